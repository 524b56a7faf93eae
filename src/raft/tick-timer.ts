import type { Clock } from '../lib/clock.ts'
import type { Scheduler } from './node-start.ts'

interface TickTimerDeps {
  readonly tickMs: number
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly scheduler: Pick<Scheduler, 'after'>
  /** Called when a turn is due. That turn calls `take` and `plan`. */
  readonly onDue: () => void
}

/**
 * The timer fires at least once per this many ticks, even if nothing is due. A timer that fires
 * late reveals a stall of the process. With the default tick that is every 250 ms, as for other
 * timers.
 */
const CHECK_TICKS = 5
/** Enough ticks to send overdue heartbeats, and far fewer than an election timeout. */
const TICKS_OF_STALL_MAX = 2

/**
 * Counts ticks, and wakes the node only for a tick at which something may become due. An idle
 * follower that hears from its leader wakes only for messages and for the periodic check. Ticks are
 * at multiples of `tickMs` and checks at multiples of CHECK_TICKS, so that they coincide with other
 * timers.
 */
export class TickTimer {
  readonly #deps: TickTimerDeps
  /** Last tick that the core has received, counted from the zero of the clock. */
  #countedTick = 0
  /** Tick at which the timer fires. */
  #dueTick = Infinity
  #cancel: (() => void) | null = null

  constructor(deps: TickTimerDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#countedTick = this.#passedTicks()
    this.plan(0)
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = null
  }

  /**
   * Takes the ticks that have passed since the last call. After a stall it counts two at most. The
   * process did not run during the stall, so the leader was not silent, and counting all missed
   * ticks would start an election.
   */
  take(): number {
    const nowTick = this.#passedTicks()
    const passed = nowTick - this.#countedTick
    if (passed <= 0) return 0
    this.#countedTick = nowTick
    return nowTick > this.#dueTick ? Math.min(passed, TICKS_OF_STALL_MAX) : passed
  }

  /** @param quietTicks ticks that may pass before one at which something may become due. */
  plan(quietTicks: number): void {
    const { tickMs, clock, scheduler, onDue } = this.#deps
    const ticksToCheck = CHECK_TICKS - (this.#countedTick % CHECK_TICKS)
    const dueTick = this.#countedTick + Math.min(quietTicks + 1, ticksToCheck)
    if (this.#cancel !== null) {
      // A timer that fires earlier is kept: canceling it would not prevent a wake-up of the thread.
      if (dueTick >= this.#dueTick) return
      this.#cancel()
    }
    this.#dueTick = dueTick
    // Rounded up, because a Node timer may fire up to 1 ms early and would have to run again.
    const delayMs = Math.max(0, Math.ceil(dueTick * tickMs - clock.monotonicMs()))
    this.#cancel = scheduler.after(delayMs, () => {
      this.#cancel = null
      onDue()
    })
  }

  #passedTicks(): number {
    const { tickMs, clock } = this.#deps
    return Math.floor(clock.monotonicMs() / tickMs)
  }
}
