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
 * The timer fires at least once per this many ticks (250 ms with the default tick, like other
 * timers), even without work, so that the node notices a stall of the process.
 */
const CHECK_TICKS = 5
/**
 * Maximum ticks counted after a stall: enough to send overdue heartbeats, and far fewer than the
 * default election timeout.
 */
const TICKS_OF_STALL_MAX = 2

/**
 * Counts ticks, and wakes the node only for a tick with work. An idle follower that hears from its
 * leader wakes up only for messages and for the periodic check. Ticks are at multiples of `tickMs`
 * and checks at multiples of CHECK_TICKS, so that they coincide with other timers.
 */
export class TickTimer {
  readonly #deps: TickTimerDeps
  /** Number of the last tick that was passed to the Raft core, counted from time 0 of the clock. */
  #countedTick = 0
  /** Number of the tick at which the timer fires. */
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
   * Returns the number of ticks since the last call, but at most two after a stall. The process did
   * not run during the stall, so it could not hear the leader, and counting all missed ticks would
   * start an election.
   */
  take(): number {
    const nowTick = this.#passedTicks()
    const passed = nowTick - this.#countedTick
    if (passed <= 0) return 0
    this.#countedTick = nowTick
    return nowTick > this.#dueTick ? Math.min(passed, TICKS_OF_STALL_MAX) : passed
  }

  /**
   * Sets the timer for the next tick with work.
   * @param quietTicks number of ticks for which the Raft core has no work.
   */
  plan(quietTicks: number): void {
    const { tickMs, clock, scheduler, onDue } = this.#deps
    const ticksToCheck = CHECK_TICKS - (this.#countedTick % CHECK_TICKS)
    const dueTick = this.#countedTick + Math.min(quietTicks + 1, ticksToCheck)
    if (this.#cancel !== null) {
      // A timer that fires earlier stays: canceling it would not prevent the thread from waking up.
      if (dueTick >= this.#dueTick) return
      this.#cancel()
    }
    this.#dueTick = dueTick
    // The delay is rounded up to a whole ms, because a Node timer may fire up to 1 ms early and
    // would have to be set again.
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
