import { type ChildProcess, execFile, spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sendToAdminSocket } from '../../../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../../../src/cli/client/connection.ts'
import type {
  ClusterStatus,
  OpenZitiMember,
  MemberStatus,
} from '../../../src/api/cluster/cluster-status.ts'
import { freePortBlock } from '../../support/ports.ts'
import { Client, until } from './client.ts'
import { flotilla, withoutAudit } from './cluster.ts'
import { compareDigests } from './digests.ts'
import { PATIENCE_MS } from '../../support/patience.ts'

/**
 * Election timeouts are five times as long as in production, so that a busy machine does not cause
 * an election.
 */
const calmElections = {
  FLOTILLA_RAFT_ELECTION_TIMEOUT_MS: '3000',
  FLOTILLA_RAFT_ELECTION_TIMEOUT_MAX_MS: '6000',
}

export const fleetAdmin = { username: 'admin', password: 'seven seas and a harbour' }

export interface CliResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface ListedController {
  readonly name: string
  readonly isOnline: boolean
}

const CATCH_UP_MS_MAX = 30_000
/**
 * Pause between two reads of the lists of all controllers, because these reads slow the controllers
 * down.
 */
const LIST_EVERY_MS = 200

/**
 * Controllers on one machine, each in a separate folder, formed and changed only through the
 * command line, as operators do it. Controller K has the ID `ctrlK`.
 */
export class Fleet {
  readonly dir: string
  readonly env: NodeJS.ProcessEnv
  readonly port: number
  readonly size: number
  /** Host that controller k binds to and advertises. */
  readonly hosts = new Map<number, string>()
  /** For controllers that run another release, the program of that release. */
  readonly programs = new Map<number, string>()
  /** Whether all controllers use the same ports; `hosts` then gives each a separate address. */
  hasSamePorts = false
  /** Whether routers connect to the port that also serves the API. */
  hasOnePort = false
  readonly #children = new Map<number, ChildProcess>()
  #clients: Client[] = []

  private constructor(port: number, size: number, env: Readonly<Record<string, string>>) {
    this.dir = mkdtempSync(join(tmpdir(), 'flotilla-fleet-'))
    this.port = port
    this.size = size
    this.env = { ...process.env, ...env }
  }

  /** @param size the highest number of controllers that the test will have. */
  static async create(
    size: number,
    options: {
      env?: Readonly<Record<string, string>>
      hasCalmElections?: boolean
      port?: number
    } = {},
  ): Promise<Fleet> {
    const calm = options.hasCalmElections === false ? {} : calmElections
    return new Fleet(options.port ?? (await freePortBlock(size)), size, { ...calm, ...options.env })
  }

  /** Forms a cluster with only controller 1, and runs it. */
  async init(): Promise<void> {
    mkdirSync(this.folder(1), { recursive: true })
    const args = ['cluster', 'init', this.config(1), '--password-file', '-', ...this.flags(1)]
    const done = await this.cliOf(1, args, `${fleetAdmin.password}\n`)
    if (done.code !== 0) throw new Error(`init failed:\n${done.stdout}${done.stderr}`)
    await this.start(1)
  }

  folder(k: number): string {
    return join(this.dir, `ctrl${k}`)
  }

  config(k: number): string {
    return join(this.folder(k), 'config.yml')
  }

  data(k: number): string {
    return join(this.folder(k), 'data')
  }

  host(k: number): string {
    return this.hosts.get(k) ?? '127.0.0.1'
  }

  url(k: number): string {
    return `https://${this.host(k)}:${this.#portOf(k)}`
  }

  #portOf(k: number): number {
    return this.port + (this.hasSamePorts ? 0 : k - 1)
  }

  routerPort(k: number): number {
    return this.#portOf(k) + (this.hasOnePort ? 0 : 100)
  }

  /** Options of the commands that create controller k. */
  flags(k: number): string[] {
    const host = this.host(k)
    const port = this.#portOf(k)
    return [
      '--id',
      `ctrl${k}`,
      '--data',
      'data',
      '--advertise',
      host,
      '--bind-api',
      `${host}:${port}`,
      '--bind-router',
      `${host}:${this.routerPort(k)}`,
      '--bind-cluster',
      `${host}:${port + 200}`,
    ]
  }

  /** Runs a command until it exits; after the timeout, kills it. */
  cli(
    args: readonly string[],
    stdin = '',
    timeoutMs = PATIENCE_MS * 2,
    program = flotilla,
  ): Promise<CliResult> {
    return new Promise((resolve) => {
      const child = execFile(
        program,
        args,
        { env: this.env, timeout: timeoutMs, killSignal: 'SIGKILL', cwd: this.dir },
        (error, stdout, stderr) => {
          const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null
          resolve({ code, stdout, stderr })
        },
      )
      child.stdin?.on('error', () => undefined)
      child.stdin?.end(stdin)
    })
  }

  /** Runs a command with the program that controller k runs. */
  async cliOf(k: number, args: readonly string[], stdin = ''): Promise<CliResult> {
    return await this.cli(args, stdin, undefined, this.programs.get(k))
  }

  /** @throws when the command fails. */
  async cluster(k: number, ...args: readonly string[]): Promise<string> {
    const [verb = '', ...rest] = args
    const all = ['cluster', verb, '--config', this.config(k), ...rest]
    const { code, stdout, stderr } = await this.cliOf(k, all)
    if (code !== 0) throw new Error(`${all.join(' ')} ended with ${code}:\n${stdout}${stderr}`)
    return stdout
  }

  async invite(k: number, ...options: readonly string[]): Promise<string> {
    return (await this.cluster(k, 'invite', ...options)).trim()
  }

  /**
   * Runs a command and gives the confirmation that it requires, as an operator who has read the
   * plan does.
   */
  async change(k: number, ...args: readonly string[]): Promise<string> {
    const [verb = '', ...rest] = args
    const all = ['cluster', verb, '--config', this.config(k), ...rest]
    let first = await this.cliOf(k, all)
    // A new leader first needs contact with a learner; if the answer says to wait, an operator
    // retries.
    const deadline = performance.now() + CATCH_UP_MS_MAX
    while (/wait until it has caught up/.test(first.stderr) && performance.now() < deadline) {
      first = await this.cliOf(k, all)
    }
    if (first.code === 0) return first.stdout
    const asked = /--confirm '([^']+)'/.exec(first.stderr + first.stdout)?.[1]
    if (asked === undefined) {
      throw new Error(`${all.join(' ')} ended with ${first.code}:\n${first.stdout}${first.stderr}`)
    }
    return await this.cluster(k, ...args, '--confirm', asked)
  }

  /** Restores a backup, so that controller k becomes the first controller of a cluster. */
  async restore(k: number, file: string, ...options: readonly string[]): Promise<CliResult> {
    mkdirSync(this.folder(k), { recursive: true })
    const words = ['cluster', 'snapshot', 'restore', file, this.config(k)]
    return await this.cli([...words, ...this.flags(k), ...options])
  }

  /**
   * Starts `cluster join` of controller k; after the join, the same process runs the controller.
   */
  beginJoin(k: number, ticket: string): ChildProcess {
    mkdirSync(this.folder(k), { recursive: true })
    const args = ['cluster', 'join', this.config(k), '--ticket-file', '-', ...this.flags(k)]
    return this.#spawn(k, args, ticket)
  }

  /** Prepares controller k for its first start, which then joins it. */
  async prepareJoin(k: number, ticket: string): Promise<CliResult> {
    mkdirSync(this.folder(k), { recursive: true })
    const args = ['cluster', 'join', this.config(k), '--ticket-file', '-', '--no-run']
    return await this.cliOf(k, [...args, ...this.flags(k)], ticket)
  }

  /** Joins controller k and waits until it has the role of its ticket. */
  async join(k: number, from: number, ...options: readonly string[]): Promise<void> {
    const child = this.beginJoin(k, await this.invite(from, ...options))
    const hasJoined = (): boolean => /^joined\b/m.test(this.log(k))
    await until(
      `ctrl${k} has joined`,
      () => Promise.resolve(hasJoined() || !this.isRunning(k)),
      120_000,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.logs()}`)
    })
    if (!hasJoined()) {
      throw new Error(`join of ctrl${k} ended with ${child.exitCode}:\n${this.logs()}`)
    }
  }

  /** Starts `controller run`, and does not wait. */
  run(k: number): ChildProcess {
    return this.#spawn(k, ['controller', 'run', this.config(k)], '')
  }

  /** Starts controller k and waits until it answers. */
  async start(k: number): Promise<void> {
    const child = this.run(k)
    const client = this.client(k)
    const version = '/edge/client/v1/version'
    await until(
      `ctrl${k} answers`,
      async () => !this.isRunning(k) || (await client.request('GET', version)).status === 200,
      60_000,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.logs()}`)
    })
    if (!this.isRunning(k)) {
      throw new Error(`ctrl${k} ended with ${child.exitCode}:\n${this.logs()}`)
    }
  }

  #spawn(k: number, args: readonly string[], stdin: string): ChildProcess {
    const log = openSync(join(this.folder(k), 'output.log'), 'a')
    const child = spawn(this.programs.get(k) ?? flotilla, args, {
      env: this.env,
      stdio: ['pipe', log, log],
      cwd: this.dir,
    })
    closeSync(log)
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(stdin)
    this.#children.set(k, child)
    return child
  }

  isRunning(k: number): boolean {
    const child = this.#children.get(k)
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }

  /** Process ID of controller k, which must be running. */
  pid(k: number): number {
    const pid = this.#children.get(k)?.pid
    if (pid === undefined) throw new Error(`ctrl${k} does not run`)
    return pid
  }

  /** Sends a signal to the process of controller k; does nothing if it has exited. */
  signal(k: number, signal: NodeJS.Signals): void {
    if (this.isRunning(k)) this.#children.get(k)?.kill(signal)
  }

  /** Stops the process of controller k. @returns its exit code, null when a signal ended it. */
  async stop(k: number, signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#children.get(k)
    if (child === undefined || !this.isRunning(k)) return child?.exitCode ?? null
    const ended = new Promise<number | null>((done) => child.once('exit', (code) => done(code)))
    child.kill(signal)
    return await ended
  }

  /** Resolves when the process of controller k has exited by itself. */
  async ended(k: number, timeoutMs = PATIENCE_MS): Promise<number | null> {
    await until(`ctrl${k} has ended`, () => Promise.resolve(!this.isRunning(k)), timeoutMs)
    return this.#children.get(k)?.exitCode ?? null
  }

  client(k: number): Client {
    const client = new Client(this.url(k), join(this.folder(k), 'ca.pem'))
    this.#clients.push(client)
    return client
  }

  async loggedIn(k: number): Promise<Client> {
    const client = this.client(k)
    await this.logIn(client)
    return client
  }

  async logIn(client: Client): Promise<void> {
    const account = { ...fleetAdmin, controllers: [], ca: '' }
    client.token = null
    await until(
      `log in at ${client.baseUrl}`,
      async () => (await client.logIn(account)).status === 200,
    )
  }

  async status(k: number): Promise<readonly MemberStatus[]> {
    const { members } = (await sendToAdminSocket(
      this.data(k),
      clusterOperationRequest('status'),
    )) as ClusterStatus
    return members
  }

  /** What `cluster list` of controller k shows, without starting a process for each poll. */
  async listed(k: number): Promise<readonly OpenZitiMember[]> {
    return (await sendToAdminSocket(
      this.data(k),
      clusterOperationRequest('list'),
    )) as readonly OpenZitiMember[]
  }

  async isConnectedVoter(k: number, asked: number): Promise<boolean> {
    const member = (await this.listed(asked)).find(({ id }) => id === `ctrl${k}`)
    return member?.voter === true && member.connected
  }

  async clusterId(k: number): Promise<string> {
    const { clusterId } = JSON.parse(await this.cluster(k, 'status', '--json')) as {
      readonly clusterId: string
    }
    return clusterId
  }

  /** Number of the leader according to controller k. */
  async leader(k: number): Promise<number> {
    return await until('a leader', async () => {
      const leader = (await this.status(k)).find(({ role }) => role === 'leader')
      return leader === undefined ? null : Number(leader.id.slice('ctrl'.length))
    })
  }

  /** The controllers list of controller k, as a client reads it. */
  async controllers(client: Client): Promise<readonly ListedController[]> {
    const answer = await client.request('GET', '/edge/management/v1/controllers?limit=100')
    if (answer.status !== 200) throw new Error(`controllers: ${answer.status} ${answer.text}`)
    return answer.body.data as readonly ListedController[]
  }

  log(k: number): string {
    const files = ['output.log', 'controller.log'].map((name) => join(this.folder(k), name))
    return files
      .filter((file) => existsSync(file))
      .map((file) => readFileSync(file, 'utf8'))
      .join('')
  }

  logs(): string {
    let text = ''
    for (let k = 1; k <= this.size; k += 1) {
      if (existsSync(this.folder(k)))
        text += `--- ctrl${k}\n${withoutAudit(this.log(k)).slice(-3000)}\n`
    }
    return text
  }

  /** @throws {StatesDiffer} when running controllers have different states. */
  async compareDigests(): Promise<void> {
    const running = [...this.#children.keys()].filter((k) => this.isRunning(k))
    const ids = new Set(running.map((k) => `ctrl${k}`))
    const [first] = running
    if (first === undefined) return
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
    await Promise.all([...this.#children.keys()].map((k) => this.stop(k, 'SIGKILL')))
    if (process.env['FLOTILLA_KEEP'] === undefined)
      rmSync(this.dir, { recursive: true, force: true })
  }
}

/**
 * Waits until each of these controllers lists exactly these controllers, all online, and prints the
 * elapsed time. @throws if that does not happen in 30 seconds.
 */
export async function expectMembers(fleet: Fleet, expected: readonly number[]): Promise<void> {
  const startedAt = performance.now()
  const wanted = expected.map((k) => `ctrl${k}`).sort()
  const clients = await Promise.all(expected.map((k) => fleet.loggedIn(k)))
  try {
    await until(
      `the members are ${wanted.join(', ')}`,
      async () => {
        const lists = await Promise.all(clients.map((client) => fleet.controllers(client)))
        const seen = lists.map((list) =>
          list
            .filter(({ isOnline }) => isOnline)
            .map(({ name }) => name)
            .sort()
            .join(),
        )
        const all = lists.map(({ length }) => length)
        if (
          all.every((count) => count === wanted.length) &&
          seen.every((names) => names === wanted.join())
        )
          return true
        throw new Error(JSON.stringify(lists))
      },
      30_000,
      LIST_EVERY_MS,
    )
    const tookMs = Math.round(performance.now() - startedAt)
    console.log(`every controller listed exactly ${wanted.join(', ')} after ${tookMs} ms`)
  } finally {
    for (const client of clients) client.close()
  }
}
