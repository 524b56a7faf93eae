import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, copyFileSync, openSync, renameSync, statSync, truncateSync } from 'node:fs'

import { removePidFile, findRunningPid, writePidFile } from '../../controller/admin/pid-file.ts'
import type { ProcessPlan } from './plan.ts'

/** Size at which a log is rotated; the previous rotated log is then overwritten. */
export const LOG_BYTES_MAX = 16 * 1024 * 1024
const POLL_MS = 250
const STOP_MS_MAX = 10_000

interface Watched {
  readonly plan: ProcessPlan
  child: ChildProcess | null
  /** Process id at the last poll; null: not running. */
  pid: number | null
}

export type ProcessEvent =
  | { readonly type: 'ended'; readonly plan: ProcessPlan; readonly how: string }
  | { readonly type: 'running'; readonly plan: ProcessPlan; readonly pid: number }

/**
 * The processes of the controllers and routers in one DIR: those started here, those found running,
 * and those started by hand later. A process is identified by the pid file that the controller
 * writes.
 */
export class QuickstartProcesses {
  readonly #watched: readonly Watched[]
  readonly #program: string
  readonly #onEvent: (event: ProcessEvent) => void
  #timer: NodeJS.Timeout | null = null

  /**
   * @param program path of bin/flotilla.
   * @param onEvent called when a process exits, and when a new one is found.
   */
  constructor(
    plans: readonly ProcessPlan[],
    program: string,
    onEvent: (event: ProcessEvent) => void,
  ) {
    this.#watched = plans.map((plan) => ({ plan, child: null, pid: pidOf(plan) }))
    this.#program = program
    this.#onEvent = onEvent
  }

  /** Id of a process that runs now, or that ran when this object was created. */
  pidOf(plan: ProcessPlan): number | null {
    return this.#watched.find((one) => one.plan === plan)?.pid ?? null
  }

  /**
   * Starts those of the given processes (by default all) that do not run, and watches all
   * processes. May be called again with other processes.
   */
  start(plans?: readonly ProcessPlan[]): void {
    for (const one of this.#watched) {
      if (one.pid === null && plans?.includes(one.plan) !== false) this.#spawn(one)
    }
    this.#timer ??= setInterval(() => this.#look(), POLL_MS)
  }

  /**
   * Sends SIGTERM to all processes, and SIGKILL to those that still run after 10 s, or at once when
   * `hasToHurry` resolves.
   */
  async stop(hasToHurry: Promise<void>): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#signal('SIGTERM')
    let isHurried = false
    void hasToHurry.then(() => {
      isHurried = true
    })
    const deadline = performance.now() + STOP_MS_MAX
    while (this.#running().length > 0 && performance.now() < deadline && !isHurried) {
      await pause(50)
    }
    while (this.#running().length > 0) {
      this.#signal('SIGKILL')
      await pause(50)
    }
  }

  #spawn(one: Watched): void {
    putLogAside(one.plan.logPath)
    const log = openSync(one.plan.logPath, 'a', 0o600)
    // Children run in the same session as quickstart. Linux shares the processor between sessions
    // first (autogroup), so with separate sessions the password hashes of one controller would slow
    // down the others at any priority. The terminal's ^C therefore also reaches the controllers,
    // which then stop in order, as they do at the signal from quickstart.
    const child = spawn(this.#program, [one.plan.program, 'run', one.plan.configPath], {
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    one.child = child
    one.pid = child.pid ?? null
    const { configPath } = one.plan
    const { pid } = child
    // Written at once: if quickstart is killed before the controller writes its pid file, the next
    // quickstart must find the controller running.
    if (pid !== undefined) writePidFile(configPath, pid)
    child.once('error', (error) => this.#end(one, `could not be started: ${error.message}`))
    child.once('exit', () => {
      // Remove the pid file here: a process that ended before it could handle a signal has not
      // removed it.
      if (pid !== undefined) removePidFile(configPath, pid)
      if (this.#timer !== null) this.#look()
    })
  }

  #look(): void {
    for (const one of this.#watched) {
      keepLogShort(one.plan.logPath)
      const before = one.pid
      const now = livePid(one)
      // The process that holds the data folder is the controller. If a quickstart is killed between
      // starting a controller and writing its pid file, the next quickstart finds the controller
      // only once the controller holds its folder.
      if (before !== null && now === null) this.#end(one, howEnded(one))
      if (now !== null && now !== before) {
        one.pid = now
        this.#onEvent({ type: 'running', plan: one.plan, pid: now })
      }
    }
  }

  #end(one: Watched, how: string): void {
    one.child = null
    one.pid = null
    this.#onEvent({ type: 'ended', plan: one.plan, how })
  }

  #running(): number[] {
    return this.#watched.flatMap((one) => livePid(one) ?? [])
  }

  #signal(signal: NodeJS.Signals): void {
    for (const pid of this.#running()) {
      try {
        process.kill(pid, signal)
      } catch {
        // Ignored: the process exited between the poll and the signal.
      }
    }
  }
}

function livePid({ child, plan }: Watched): number | null {
  if (child !== null && child.exitCode === null && child.signalCode === null) {
    return child.pid ?? null
  }
  return pidOf(plan)
}

function pidOf({ configPath, dataFolder }: ProcessPlan): number | null {
  return findRunningPid(configPath, dataFolder)
}

function howEnded({ child }: Watched): string {
  if (child?.signalCode !== null && child?.signalCode !== undefined) {
    return `was killed by ${child.signalCode}`
  }
  if (child?.exitCode !== null && child?.exitCode !== undefined) {
    return `ended with exit code ${child.exitCode}`
  }
  return 'has ended'
}

/** @param path path of a log to which no process is writing. */
function putLogAside(path: string): void {
  if (isTooLarge(path)) renameSync(path, `${path}.1`)
}

/**
 * Rotates the log of a running process. The process keeps appending to its file, so the log is
 * copied and truncated. A line written between the two steps is lost; operators who need every line
 * should store the output of controllers themselves. Controllers report a full disk themselves, and
 * stop writing long before.
 */
function keepLogShort(path: string): void {
  try {
    if (!isTooLarge(path)) return
    copyFileSync(path, `${path}.1`)
    truncateSync(path)
  } catch {
    // The next poll retries.
  }
}

function isTooLarge(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
