import type { Clock } from '../clock.ts'
import { FairQueue } from './fair-queue.ts'
import { Problem } from '../problems.ts'

interface ShareLimits {
  /** Processor time that a caller may use without waiting, in addition to `FREE_PART`. */
  readonly processorBurstMs: number
  /** Maximum time that waiting work runs in each turn of the event loop. */
  readonly processorSliceMs: number
  /** Maximum callers whose processor time is tracked. */
  readonly processorCallersMax: number
  /** Maximum waiting tasks. A `FairQueue` divides them among callers. */
  readonly waitingRequestsMax: number
}

/**
 * Fraction of the main thread's time that each caller may use without waiting for other callers.
 */
const FREE_PART = 0.25

/** Delay before retrying when the queue of waiting tasks was full, ms. */
const RETRY_MS = 10

/**
 * Work that takes more slices than this counts as long. `finish` then puts its remaining steps at
 * the end of the caller's line, and `begin` makes the caller pause after the work. The limit is
 * more than one, because on a busy machine, work that fits in one slice may take two.
 */
const SHORT_SLICES_MAX = 3
const REST_MS_MAX = 1000

/** Recent processor time of a caller, as a leaky bucket that drains at {@link FREE_PART}. */
interface Use {
  usedMs: number
  /** Monotonic ms. */
  atMs: number
}

/**
 * Shares the processor time of the main thread between callers. A task of a caller that used little
 * time recently runs immediately. The tasks of other callers wait in one line per caller, which are
 * served round robin; between two slices, the event loop does all other work. Long work consists of
 * steps, so that it can be interrupted.
 */
export class ProcessorShare {
  readonly #limits: ShareLimits
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #uses = new Map<string, Use>()
  readonly #waiting: FairQueue<() => void>
  readonly #waitingCounts = new Map<string, number>()
  #isScheduled = false
  /**
   * Caller whose task is running. If this task starts another one, that runs immediately, as part
   * of the first.
   */
  #running: string | null = null

  constructor(limits: ShareLimits, clock: Pick<Clock, 'monotonicMs'>) {
    this.#limits = limits
    this.#clock = clock
    this.#waiting = new FairQueue(limits.waitingRequestsMax)
  }

  /**
   * Runs the task immediately, or when it is the caller's turn. A task that is started by the
   * caller's running task runs as part of that task.
   * @returns whether the task had to wait.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS when too many tasks of the caller, or of all
   * callers, already wait.
   */
  run(caller: string, task: () => void): boolean {
    if (caller === this.#running) {
      task()
      return false
    }
    const nowMs = this.#clock.monotonicMs()
    if (!this.#mustWait(caller, nowMs)) {
      this.#measured(caller, nowMs, task)
      return false
    }
    this.#enqueue(caller, task)
    return true
  }

  /**
   * Runs all steps: one slice immediately, the rest when it is the caller's turn. Each step should
   * take well below 1 ms. Short work runs to its end before the caller's next task: otherwise, for
   * example, 32 lists that are built concurrently would all stay in memory until their last row.
   * @throws errors of a step; SERVER_TOO_MANY_REQUESTS when too many tasks already wait.
   */
  finish<T>(caller: string, steps: Iterator<void, T>): T | Promise<T> {
    const first = this.#slice(steps)
    if (first.done === true) return first.value
    return new Promise((resolve, reject) => {
      let slices = 1
      const resume = (): void => {
        try {
          const next = this.#slice(steps)
          slices += 1
          if (next.done === true) resolve(next.value)
          else this.#enqueue(caller, resume, slices <= SHORT_SLICES_MAX)
        } catch (error) {
          fail(error)
        }
      }
      // The iterator's `return` lets unfinished steps release their resources.
      const fail = (error: unknown): void => {
        steps.return?.()
        reject(error as Error)
      }
      try {
        this.#enqueue(caller, resume, true)
      } catch (error) {
        fail(error)
      }
    })
  }

  /**
   * Starts the work immediately, or when it is the caller's turn, and runs all its steps. The work
   * is never refused: if the queue is full, it waits for space there. A caller must therefore not
   * start a second one before the first has ended. After long work, the caller pauses for as long
   * as the work took, at most `REST_MS_MAX`. Otherwise a caller with endless work would use all
   * remaining processor time, even that of other processes.
   * @returns a promise that resolves after the work and the pause; null when the work is already
   * complete.
   */
  begin(caller: string, work: () => Iterator<void> | null): Promise<void> | null {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let steps: Iterator<void> | null = null
    let isOver = false
    let tookMs = 0
    let slices = 0
    const resume = (): void => {
      const fromMs = this.#clock.monotonicMs()
      try {
        isOver = steps === null || this.#slice(steps).done === true
      } catch (error) {
        reject(error as Error)
        return
      }
      tookMs += this.#clock.monotonicMs() - fromMs
      slices += 1
      // @guard heavy-frames-of-a-router--rest
      if (!isOver) this.#enqueueAtLast(caller, resume)
      else if (slices > SHORT_SLICES_MAX) setTimeout(resolve, Math.min(tookMs, REST_MS_MAX))
      else resolve()
    }
    const task = (): void => {
      try {
        steps = work()
      } catch (error) {
        reject(error as Error)
        return
      }
      resume()
    }
    const nowMs = this.#clock.monotonicMs()
    if (this.#mustWait(caller, nowMs)) this.#enqueueAtLast(caller, task)
    else this.#measured(caller, nowMs, task)
    return isOver ? null : promise
  }

  #enqueueAtLast(caller: string, task: () => void): void {
    try {
      this.#enqueue(caller, task)
    } catch {
      setTimeout(() => this.#enqueueAtLast(caller, task), RETRY_MS)
    }
  }

  #slice<T>(steps: Iterator<void, T>): IteratorResult<void, T> {
    const endMs = this.#clock.monotonicMs() + this.#limits.processorSliceMs
    for (;;) {
      const next = steps.next()
      // @guard whole-list-keeps-others-waiting
      if (next.done === true || this.#clock.monotonicMs() >= endMs) return next
    }
  }

  /**
   * Whether a new task of the caller must wait. It also waits if earlier tasks of the caller wait,
   * so that the caller's requests start in the order of their arrival.
   */
  #mustWait(caller: string, nowMs: number): boolean {
    if (this.#waitingCounts.has(caller)) return true
    const use = this.#uses.get(caller)
    // @guard requests-of-one-caller
    return use !== undefined && this.#leaked(use, nowMs) > this.#limits.processorBurstMs
  }

  #leaked(use: Use, nowMs: number): number {
    use.usedMs = Math.max(0, use.usedMs - (nowMs - use.atMs) * FREE_PART)
    use.atMs = nowMs
    return use.usedMs
  }

  #measured(caller: string, fromMs: number, task: () => void): void {
    const outer = this.#running
    this.#running = caller
    try {
      task()
    } finally {
      this.#running = outer
      const nowMs = this.#clock.monotonicMs()
      const tookMs = nowMs - fromMs
      const use = this.#uses.get(caller)
      if (use === undefined) this.#remember(caller, tookMs, nowMs)
      else use.usedMs = this.#leaked(use, nowMs) + tookMs
    }
  }

  #remember(caller: string, usedMs: number, atMs: number): void {
    if (this.#uses.size >= this.#limits.processorCallersMax) {
      for (const [known, use] of this.#uses) {
        if (this.#leaked(use, atMs) === 0) this.#uses.delete(known)
      }
    }
    if (this.#uses.size >= this.#limits.processorCallersMax) return
    this.#uses.set(caller, { usedMs, atMs })
  }

  #enqueue(caller: string, task: () => void, isNext = false): void {
    const own = (): void => {
      const left = (this.#waitingCounts.get(caller) ?? 1) - 1
      if (left > 0) this.#waitingCounts.set(caller, left)
      else this.#waitingCounts.delete(caller)
      this.#measured(caller, this.#clock.monotonicMs(), task)
    }
    if (!this.#waiting.push(caller, own, isNext)) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS', {
        detail: 'too many queued requests of this caller',
        retryAfterSeconds: 1,
      })
    }
    this.#waitingCounts.set(caller, (this.#waitingCounts.get(caller) ?? 0) + 1)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#takeTurns()
    })
  }

  #takeTurns(): void {
    const endMs = this.#clock.monotonicMs() + this.#limits.processorSliceMs
    for (;;) {
      const task = this.#waiting.shift()
      if (task === undefined) return
      task()
      if (this.#clock.monotonicMs() >= endMs) break
    }
    this.#schedule()
  }
}
