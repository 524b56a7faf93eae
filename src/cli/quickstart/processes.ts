import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, copyFileSync, openSync, renameSync, statSync, truncateSync } from 'node:fs'

import { removePidFile, findRunningPid, writePidFile } from '../../controller/admin/pid-file.ts'
import type { ProcessPlan } from './plan.ts'

/** Maximum size of a log. A larger log replaces the previous rotated log. */
export const LOG_BYTES_MAX = 16 * 1024 * 1024
const POLL_MS = 250
const STOP_MS_MAX = 10_000

interface Watched {
  readonly plan: ProcessPlan
  child: ChildProcess | null
  /** Process ID at the last poll; null: not running. */
  pid: number | null
}

export type ProcessEvent =
  | { readonly type: 'ended'; readonly plan: ProcessPlan; readonly how: string }
  | { readonly type: 'running'; readonly plan: ProcessPlan; readonly pid: number }

/**
 * The processes of the controllers and routers in one DIR, including processes that an operator or
 * an earlier quickstart started. A process is found by its pid file.
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

  /** ID of the process at the last poll, or when this object was created; null: not running. */
  pidOf(plan: ProcessPlan): number | null {
    return this.#watched.find((one) => one.plan === plan)?.pid ?? null
  }

  /**
   * Starts those of the given processes (default: all) that do not run, and watches all processes.
   * The caller may call it again with other processes.
   */
  start(plans?: readonly ProcessPlan[]): void {
    for (const one of this.#watched) {
      if (one.pid === null && plans?.includes(one.plan) !== false) this.#spawn(one)
    }
    this.#timer ??= setInterval(() => this.#look(), POLL_MS)
  }

  /**
   * Sends SIGTERM to all processes, and SIGKILL to those that still run after 10 s, or as soon as
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
    // The children stay in the session of quickstart. Linux first shares the processor between
    // sessions (autogroup): with a session for each controller, the password hashes of one would
    // slow down the others at any priority. The terminal therefore sends ^C also to the
    // controllers, which then stop gracefully, as on the signal from quickstart.
    const child = spawn(this.#program, [one.plan.program, 'run', one.plan.configPath], {
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    one.child = child
    one.pid = child.pid ?? null
    const { configPath } = one.plan
    const { pid } = child
    // Written here and not only by the controller: if quickstart is killed before the controller
    // writes its pid file, the next quickstart must find the controller.
    if (pid !== undefined) writePidFile(configPath, pid)
    child.once('error', (error) => this.#end(one, `could not be started: ${error.message}`))
    child.once('exit', () => {
      // Removes the pid file, because a process that ended before it installed its signal handlers
      // has not removed it.
      if (pid !== undefined) removePidFile(configPath, pid)
      if (this.#timer !== null) this.#look()
    })
  }

  #look(): void {
    for (const one of this.#watched) {
      keepLogShort(one.plan.logPath)
      const before = one.pid
      // The process that holds the data folder counts as the controller. If a quickstart was killed
      // after it started a controller and before it wrote the pid file, this quickstart finds the
      // controller only when it holds its data folder.
      const now = livePid(one)
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
        // The process exited between the poll and the signal.
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

/**
 * Renames the log of an earlier run if it is too large.
 * @param path path of a log to which no process writes.
 */
function putLogAside(path: string): void {
  if (isTooLarge(path)) renameSync(path, `${path}.1`)
}

/**
 * Rotates the log of a running process by copying and truncating it, because the process keeps
 * appending to the same file. A line written between the two steps is lost; operators who need
 * every line should store the output of controllers in another way. If the disk becomes full,
 * controllers report this and stop writing.
 */
function keepLogShort(path: string): void {
  try {
    if (!isTooLarge(path)) return
    copyFileSync(path, `${path}.1`)
    truncateSync(path)
  } catch {
    // The rotation failed; the next poll tries again.
  }
}

function isTooLarge(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
