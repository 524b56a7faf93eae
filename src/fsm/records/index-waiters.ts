import type { Index } from '../../raft/types.ts'

/**
 * Runs a function once, after a delay.
 * @returns a function that cancels the call.
 */
export type ScheduleTimer = (delayMs: number, run: () => void) => () => void

/** Schedules timers that do not keep the process alive. */
export const scheduleWithTimer: ScheduleTimer = (delayMs, run) => {
  const timer = setTimeout(run, delayMs)
  timer.unref()
  return () => {
    clearTimeout(timer)
  }
}

interface Waiter {
  readonly index: Index
  readonly settle: (isReached: boolean) => void
}

const waitersMax = 16_384

/**
 * Waits until an index is applied. If there are more than `waitersMax` waiters, a further wait
 * fails immediately.
 */
export class IndexWaiters {
  readonly #waiters = new Set<Waiter>()
  readonly #schedule: ScheduleTimer
  #lowest = Infinity

  constructor(schedule: ScheduleTimer) {
    this.#schedule = schedule
  }

  wait(index: Index, timeoutMs: number): Promise<boolean> {
    if (this.#waiters.size >= waitersMax) return Promise.resolve(false)
    return new Promise((resolve) => {
      const waiter: Waiter = {
        index,
        settle: (isReached) => {
          cancel()
          this.#waiters.delete(waiter)
          resolve(isReached)
        },
      }
      const cancel = this.#schedule(timeoutMs, () => {
        waiter.settle(false)
      })
      this.#waiters.add(waiter)
      this.#lowest = Math.min(this.#lowest, index)
    })
  }

  reached(applied: Index): void {
    if (applied < this.#lowest) return
    let lowest = Infinity
    for (const waiter of this.#waiters) {
      if (waiter.index <= applied) waiter.settle(true)
      else lowest = Math.min(lowest, waiter.index)
    }
    this.#lowest = lowest
  }

  dismiss(): void {
    for (const waiter of this.#waiters) waiter.settle(false)
  }
}
