import type { Clock } from '../clock.ts'
import { FairQueue } from './fair-queue.ts'
import { Problem } from '../problems.ts'

export interface ShareLimits {
  /** Time that a caller may use without waiting, beyond its free part. */
  readonly processorBurstMs: number
  /** Time that waiting work gets between two turns of the event loop. */
  readonly processorSliceMs: number
  /** Callers whose use is remembered. */
  readonly processorCallersMax: number
  /** Tasks that wait, shared by callers. */
  readonly waitingRequestsMax: number
}

/** Part of the main thread that a caller may use without waiting for others. */
const FREE_PART = 0.25

/** Pause before room to wait is asked for again, where there was none. */
const ASK_AGAIN_MS = 10

/**
 * Work of more slices is long: it goes behind what else its caller waits for, or is followed by a
 * rest. A busy machine makes two slices of what fits into one.
 */
const SHORT_SLICES_MAX = 3
const REST_MS_MAX = 1000

/** Time that a caller has used lately: a bucket that leaks at {@link FREE_PART}. */
interface Use {
  usedMs: number
  /** Monotonic ms. */
  atMs: number
}

/**
 * Shares the processor time of the main thread between callers. A caller that has used little
 * lately is served at once. The work of one that has used more waits in its own line; the lines
 * take turns, and between slices the event loop serves everybody else. Long work is made of steps,
 * so that it takes turns with itself.
 */
export class ProcessorShare {
  readonly #limits: ShareLimits
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #uses = new Map<string, Use>()
  readonly #waiting: FairQueue<() => void>
  readonly #waitingCounts = new Map<string, number>()
  #isScheduled = false
  /** The caller whose task runs: what that begins itself is a part of it. */
  #running: string | null = null

  constructor(limits: ShareLimits, clock: Pick<Clock, 'monotonicMs'>) {
    this.#limits = limits
    this.#clock = clock
    this.#waiting = new FairQueue(limits.waitingRequestsMax)
  }

  /**
   * Runs the task now, or when it is its caller's turn. A task of that caller that begins another
   * one runs it as a part of itself.
   * @returns whether it had to wait.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS when too much of the caller's, or of all, waits
   * already.
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
   * Takes the steps to their end: what fits into a slice at once, the rest in the caller's turns.
   * Each step should take well below a millisecond. Short work is ended before the next of its
   * caller goes on: 32 lists that grow side by side are all in memory until the last row.
   * @throws what a step throws; SERVER_TOO_MANY_REQUESTS when too much waits already.
   */
  finish<T>(caller: string, steps: Iterator<void, T>): T | Promise<T> {
    const first = this.#slice(steps)
    if (first.done === true) return first.value
    return new Promise((resolve, reject) => {
      let slices = 1
      const goOn = (): void => {
        try {
          const next = this.#slice(steps)
          slices += 1
          if (next.done === true) resolve(next.value)
          else this.#enqueue(caller, goOn, slices <= SHORT_SLICES_MAX)
        } catch (error) {
          fail(error)
        }
      }
      // Steps that are not taken to their end give back what they hold.
      const fail = (error: unknown): void => {
        steps.return?.()
        reject(error as Error)
      }
      try {
        this.#enqueue(caller, goOn, true)
      } catch (error) {
        fail(error)
      }
    })
  }

  /**
   * Begins the work now, or when it is its caller's turn, and takes the steps that it gives to
   * their end. It is never refused, so a caller begins one at a time: it waits for room as well.
   * Long work is followed by a rest of as long as it took, or a caller that always has more to say
   * takes all of the processor that is left, from other processes of the machine as well.
   * @returns when it is over, with the rest; null: it is.
   */
  begin(caller: string, work: () => Iterator<void> | null): Promise<void> | null {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let steps: Iterator<void> | null = null
    let isOver = false
    let tookMs = 0
    let slices = 0
    const goOn = (): void => {
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
      if (!isOver) this.#enqueueAtLast(caller, goOn)
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
      goOn()
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
      setTimeout(() => this.#enqueueAtLast(caller, task), ASK_AGAIN_MS)
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
   * Also behind what waits already: the requests of one caller are begun in the order in which they
   * came.
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
