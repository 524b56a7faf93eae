import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, openSync, closeSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sendToAdminSocket } from '../../../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../../../src/cli/client/connection.ts'
import type { ClusterStatus, MemberStatus } from '../../../src/api/cluster/cluster-status.ts'
import { type AdminFile, Client, isRunning, until } from './client.ts'
import { compareDigests } from './digests.ts'
import { formedSecret } from '../../support/formed-secret.ts'
import { freePortBlock } from '../../support/ports.ts'
import { flotilla } from '../../support/program.ts'
import { PATIENCE_MS } from '../../support/patience.ts'

export { flotilla }

/**
 * Election timeouts are five times as long as in production, so that a busy machine does not cause
 * an election.
 */
const calmElections = {
  FLOTILLA_RAFT_ELECTION_TIMEOUT_MS: '3000',
  FLOTILLA_RAFT_ELECTION_TIMEOUT_MAX_MS: '6000',
}

interface StartOptions {
  readonly nodes?: number
  readonly routers?: number
  readonly env?: Record<string, string>
  readonly hasCalmElections?: boolean
  /** Launcher that forms and runs the cluster; by default that of this release. */
  readonly program?: string
}

/** A cluster of real processes in a separate folder, created by `flotilla quickstart`. */
export class TestCluster {
  readonly dir: string
  readonly port: number
  readonly nodes: number
  readonly routers: number
  readonly env: NodeJS.ProcessEnv
  readonly program: string
  #quickstart: ChildProcess | null = null
  #started: ChildProcess[] = []
  #clients: Client[] = []
  output = ''

  private constructor(
    port: number,
    nodes: number,
    routers: number,
    env: Record<string, string>,
    program: string,
  ) {
    this.dir = mkdtempSync(join(tmpdir(), 'flotilla-test-'))
    this.port = port
    this.nodes = nodes
    this.routers = routers
    this.program = program
    this.env = { ...process.env, ...env }
  }

  static async start(options: StartOptions = {}): Promise<TestCluster> {
    const cluster = await TestCluster.create(options)
    try {
      await cluster.quickstart()
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
    return cluster
  }

  /** Reserves a folder and ports; it starts nothing yet. */
  static async create(options: StartOptions = {}): Promise<TestCluster> {
    const env = { ...(options.hasCalmElections === false ? {} : calmElections), ...options.env }
    const { nodes = 3, routers = 0, program = flotilla } = options
    return new TestCluster(await freePortBlock(), nodes, routers, env, program)
  }

  get folder(): string {
    return join(this.dir, 'net')
  }

  get admin(): AdminFile {
    return JSON.parse(readFileSync(join(this.folder, 'admin.json'), 'utf8')) as AdminFile
  }

  /** Starts (or resumes) the cluster in a child process that runs quickstart in the foreground. */
  beginQuickstart(): ChildProcess {
    const { folder, nodes, port, routers } = this
    const counts = ['--nodes', `${nodes}`, '--routers', `${routers}`]
    const args = ['quickstart', '--dir', folder, '--port', `${port}`, ...counts]
    const child = spawn(this.program, args, { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#quickstart = child
    this.output = ''
    const gather = (chunk: Buffer): void => {
      this.output += chunk.toString('utf8')
    }
    child.stdout.on('data', gather)
    child.stderr.on('data', gather)
    return child
  }

  /** Calls `beginQuickstart`, and waits until it prints `ready`. */
  async quickstart(): Promise<void> {
    const child = this.beginQuickstart()
    await until(
      'quickstart prints ready',
      () => {
        if (child.exitCode !== null) return Promise.resolve('exited')
        return Promise.resolve(/^ready$/m.test(this.output) && 'ready')
      },
      120_000,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.output}\n${this.logs()}`)
    })
    if (child.exitCode !== null)
      throw new Error(`quickstart exited:\n${this.output}\n${this.logs()}`)
  }

  /** Ends quickstart with a signal, by default that of ^C, and waits until it has exited. */
  async interrupt(signal: NodeJS.Signals = 'SIGINT'): Promise<number | null> {
    const child = this.#quickstart
    if (child === null) return null
    const exited = new Promise<number | null>((done) => child.once('exit', (code) => done(code)))
    if (child.exitCode === null) child.kill(signal)
    else return child.exitCode
    return exited
  }

  /**
   * The key with which the cluster was formed, from the log of the first controller. That
   * controller must not be writing.
   */
  async clusterKey(): Promise<{ version: number; key: Uint8Array }> {
    const id = this.id(1)
    const { version, secret } = await formedSecret(join(this.folder, id), id, 'clusterKey')
    return { version, key: secret }
  }

  id(k: number): string {
    return `ctrl${k}`
  }

  pid(k: number): number | null {
    const file = join(this.folder, this.id(k), 'pid')
    return existsSync(file) ? Number(readFileSync(file, 'utf8').trim()) : null
  }

  kill(k: number, signal: NodeJS.Signals = 'SIGKILL'): void {
    const pid = this.pid(k)
    if (pid === null) throw new Error(`${this.id(k)} has no pid file`)
    process.kill(pid, signal)
  }

  /** Starts a controller directly, as the notice of quickstart describes. */
  run(k: number, env: Readonly<Record<string, string>> = {}, program = this.program): ChildProcess {
    const folder = join(this.folder, this.id(k))
    const log = openSync(join(folder, 'controller.log'), 'a')
    const child = spawn(program, ['controller', 'run', join(folder, 'config.yml')], {
      env: { ...this.env, ...env },
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    this.#started.push(child)
    return child
  }

  /** A client of controller k without a session. */
  client(k: number): Client {
    const url = this.admin.controllers[k - 1]
    if (url === undefined) throw new Error(`no controller ${k}`)
    const client = new Client(url, this.admin.ca)
    this.#clients.push(client)
    return client
  }

  async loggedIn(k: number): Promise<Client> {
    const client = this.client(k)
    await until(
      `log in on ${this.id(k)}`,
      async () => (await client.logIn(this.admin)).status === 200,
    )
    return client
  }

  /** The members as controller k reports them over its admin socket. */
  async status(k: number): Promise<readonly MemberStatus[]> {
    return (await this.clusterStatus(k)).members
  }

  async clusterStatus(k: number): Promise<ClusterStatus> {
    // Same result as `flotilla cluster status --json`, without starting a process for each poll.
    const folder = join(this.folder, this.id(k), 'data')
    return (await sendToAdminSocket(folder, clusterOperationRequest('status'))) as ClusterStatus
  }

  /** The number of the leader, according to the first controller that answers. */
  async leader(timeoutMs = PATIENCE_MS): Promise<number> {
    return until(
      'a leader',
      async () => {
        for (let k = 1; k <= this.nodes; k += 1) {
          const members = await this.status(k).catch(() => [])
          const leader = members.find((member) => member.role === 'leader')
          if (leader !== undefined) return Number(leader.id.slice('ctrl'.length))
        }
        return null
      },
      timeoutMs,
    )
  }

  /** Resolves when every controller answers, knows a leader and has had contact with all others. */
  async untilWhole(): Promise<void> {
    for (let k = 1; k <= this.nodes; k += 1) {
      await until(`${this.id(k)} is connected to the others`, async () => {
        const members = await this.status(k)
        const isConnected = members.every(({ lastContactMs }) => lastContactMs !== null)
        return isConnected && members.some(({ role }) => role === 'leader')
      })
    }
  }

  async followers(): Promise<number[]> {
    const leader = await this.leader()
    return [1, 2, 3].slice(0, this.nodes).filter((k) => k !== leader)
  }

  logs(): string {
    let text = ''
    for (let k = 1; k <= this.nodes; k += 1) {
      const file = join(this.folder, this.id(k), 'controller.log')
      if (existsSync(file))
        text += `--- ${this.id(k)}\n${withoutAudit(readFileSync(file, 'utf8')).slice(-3000)}\n`
    }
    return text
  }

  /** @throws {StatesDiffer} when running controllers have different states. */
  async compareDigests(): Promise<void> {
    const running = Array.from({ length: this.nodes }, (_, at) => at + 1).filter((k) =>
      isRunning(this.pid(k)),
    )
    const [first] = running
    if (first === undefined || running.length < 2) return
    const ids = new Set(running.map((k) => this.id(k)))
    await compareDigests(
      () => this.status(first),
      (id) => ids.has(id),
    )
  }

  /**
   * Ends every process, and removes the folder unless FLOTILLA_KEEP is set.
   * @throws {StatesDiffer} when the states of the controllers differ.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.compareDigests()
    } finally {
      await this.#end()
    }
  }

  async #end(): Promise<void> {
    for (const client of this.#clients) client.close()
    await this.interrupt('SIGTERM')
    for (let k = 1; k <= this.nodes; k += 1) {
      const pid = this.pid(k)
      if (pid === null) continue
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // The process has already exited.
      }
    }
    const running = this.#started.filter(
      (child) => child.exitCode === null && child.signalCode === null,
    )
    await Promise.all(
      running.map(
        (child) =>
          new Promise((done) => {
            child.once('exit', done)
            child.kill('SIGKILL')
          }),
      ),
    )
    if (process.env['FLOTILLA_KEEP'] === undefined)
      rmSync(this.dir, { recursive: true, force: true })
  }
}

/** Removes the audit lines, which each write adds. */
export function withoutAudit(log: string): string {
  return log
    .split('\n')
    .filter((line) => !line.endsWith('"msg":"audit"}'))
    .join('\n')
}
