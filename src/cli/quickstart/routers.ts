import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { CommandFailure, EXIT_FAILED, sentenceOf } from '../../controller/failure.ts'
import { writeNewFile } from '../../pki/key-file.ts'
import { composeRouterConfig } from '../../config/router/compose.ts'
import { ADMIN_FILE_NAME, type AdminFile } from '../cluster/admin-file.ts'
import { refusalIn } from '../client/refusal.ts'
import { removePidFile, runningRouterPid, writePidFile } from '../controller/pid-file.ts'
import { ask } from '../client/https.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import { printLine, shellWord } from '../terminal/output.ts'
import { putLogAside } from './log.ts'
import { LOOPBACK, type QuickstartPlan } from './plan.ts'

const TIMEOUT_MS = 15_000
const ENROLL_MS_MAX = 60_000
const STOP_MS_MAX = 10_000
const POLL_MS = 50
const MANAGEMENT = '/edge/management/v1'

interface RouterPlan {
  readonly name: string
  readonly folder: string
  readonly configPath: string
  readonly logPath: string
}

/**
 * Routers beside the controllers of one DIR, each enrolled as an operator would, and run as a
 * process of its own.
 */
export class QuickstartRouters {
  readonly #plan: QuickstartPlan
  readonly #routers: readonly RouterPlan[]
  readonly #program: string
  readonly #children = new Map<RouterPlan, ChildProcess>()
  #isStopping = false

  constructor(plan: QuickstartPlan, count: number, program: string) {
    this.#plan = plan
    this.#program = program
    this.#routers = Array.from({ length: count }, (_, at) => routerPlan(plan, at + 1))
  }

  /** One that cannot be started is told, and costs the cluster nothing. */
  async start(): Promise<void> {
    for (const router of this.#routers) {
      try {
        await this.#start(router)
      } catch (error) {
        printLine(`${router.name} was not started: ${sentenceOf(error)}`)
      }
    }
  }

  /**
   * SIGTERM, and SIGKILL to those that are still there after 10 s, or at once when `hasToHurry`
   * resolves.
   */
  async stop(hasToHurry: Promise<void>): Promise<void> {
    this.#isStopping = true
    this.#signal('SIGTERM')
    let isHurried = false
    void hasToHurry.then(() => {
      isHurried = true
    })
    const deadline = performance.now() + STOP_MS_MAX
    while (this.#pids().length > 0 && performance.now() < deadline && !isHurried) await pause()
    while (this.#pids().length > 0) {
      this.#signal('SIGKILL')
      await pause()
    }
  }

  async #start(router: RouterPlan): Promise<void> {
    const running = runningRouterPid(router.configPath)
    if (running !== null) {
      printLine(`${router.name} is running already (pid ${running})`)
      return
    }
    makeFolder(router.folder, 0o700)
    if (!existsSync(router.configPath)) {
      const endpoints = this.#plan.controllers.map(
        ({ routerPort }) => `tls:${LOOPBACK}:${routerPort}`,
      )
      const text = composeRouterConfig({ name: router.name, endpoints, ip: LOOPBACK })
      writeNewFile(router.configPath, text, 0o600)
    }
    if (!existsSync(join(router.folder, `${router.name}.cert`))) await this.#enroll(router)
    this.#spawn(router)
  }

  async #enroll(router: RouterPlan): Promise<void> {
    const jwt = await new RouterRecords(this.#plan).tokenOf(router.name)
    // The key of an enrollment by an earlier token is of no use any more.
    rmSync(join(router.folder, `${router.name}.key.enrolling`), { force: true })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const args = ['router', 'enroll', router.configPath, '--jwt', '-', '--force']
    const child = spawn(this.#program, args, { stdio: ['pipe', 'ignore', 'pipe'] })
    const timer = setTimeout(() => child.kill('SIGKILL'), ENROLL_MS_MAX)
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => {
      if (said.length < 4096) said += chunk.toString('utf8')
    })
    child.stdin.on('error', () => undefined)
    child.stdin.end(jwt)
    child.once('error', reject)
    child.once('close', (code) => {
      clearTimeout(timer)
      if (code === 0) resolve()
      else reject(new Error(`its enrollment failed: ${said.trim()}`))
    })
    await promise
  }

  #spawn(router: RouterPlan): void {
    putLogAside(router.logPath)
    const log = openSync(router.logPath, 'a', 0o600)
    const child = spawn(this.#program, ['router', 'run', router.configPath], {
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    this.#children.set(router, child)
    const { pid } = child
    // At once: should quickstart be killed, the next one must find it running.
    if (pid !== undefined) writePidFile(router.configPath, pid)
    child.once('error', (error) => printLine(`${router.name} was not started: ${error.message}`))
    child.once('exit', (code, signal) => {
      if (pid !== undefined) removePidFile(router.configPath, pid)
      this.#children.delete(router)
      if (this.#isStopping) return
      const how = signal === null ? `ended with exit code ${code}` : `was killed by ${signal}`
      const command = `${shellWord(this.#program)} router run ${shellWord(router.configPath)}`
      printLine(`${router.name} ${how}; its log is ${router.logPath}. To start it again:`)
      printLine(`  ${command}`)
    })
    if (pid !== undefined)
      printLine(`${router.name} runs (pid ${pid}); its log is ${router.logPath}`)
  }

  #pids(): number[] {
    return this.#routers.flatMap(({ configPath }) => runningRouterPid(configPath) ?? [])
  }

  #signal(signal: NodeJS.Signals): void {
    for (const pid of this.#pids()) {
      try {
        process.kill(pid, signal)
      } catch {
        // It has ended between the look and the signal.
      }
    }
  }
}

function routerPlan({ dir }: QuickstartPlan, number: number): RouterPlan {
  const name = `router${number}`
  const folder = join(dir, name)
  return {
    name,
    folder,
    configPath: join(folder, 'config.yml'),
    logPath: join(folder, 'router.log'),
  }
}

type Row = Readonly<Record<string, unknown>>

/** Routers as the administrator of DIR sees them. */
class RouterRecords {
  readonly #admin: AdminFile
  readonly #caPem: string
  #session = ''

  constructor({ dir }: QuickstartPlan) {
    this.#admin = JSON.parse(readFileSync(join(dir, ADMIN_FILE_NAME), 'utf8')) as AdminFile
    this.#caPem = readFileSync(this.#admin.ca, 'utf8')
  }

  /** Of the router of this name, which is made if there is none. */
  async tokenOf(name: string): Promise<string> {
    const { username, password } = this.#admin
    const path = '/authenticate?method=password'
    const { token } = (await this.#ask('POST', path, { username, password })) as Row
    this.#session = String(token)
    const filter = encodeURIComponent(`name = "${name}"`)
    const [found] = (await this.#ask('GET', `/edge-routers?filter=${filter}`)) as readonly Row[]
    const id = String(
      (found ?? ((await this.#ask('POST', '/edge-routers', { name })) as Row))['id'],
    )
    // One that was enrolled before has lost its files, and a token may have expired.
    if (found !== undefined) await this.#ask('POST', `/edge-routers/${id}/re-enroll`, {})
    const { enrollmentJwt } = (await this.#ask('GET', `/edge-routers/${id}`)) as Row
    if (typeof enrollmentJwt === 'string') return enrollmentJwt
    throw new CommandFailure(EXIT_FAILED, `router ${name} has no enrollment`)
  }

  async #ask(method: 'GET' | 'POST', path: string, body?: unknown): Promise<unknown> {
    const [url = ''] = this.#admin.controllers
    const answer = await ask({
      url: `${url}${MANAGEMENT}${path}`,
      method,
      headers: this.#session === '' ? {} : { 'net-session': this.#session },
      ...(body === undefined ? {} : { body }),
      caPem: this.#caPem,
      timeoutMs: TIMEOUT_MS,
    })
    if (answer.status >= 200 && answer.status < 300) {
      return (answer.body as { data?: unknown } | null)?.data ?? null
    }
    throw new CommandFailure(
      EXIT_FAILED,
      `${url}: ${refusalIn(answer.status, answer.body).message}`,
    )
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_MS))
}
