import type { Clock } from '../lib/clock.ts'
import type { Scheduler } from './node-start.ts'

interface TickTimerParts {
  readonly tickMs: number
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly scheduler: Pick<Scheduler, 'after'>
  /** A turn is due, in which the timer is asked for the ticks and planned again. */
  readonly onDue: () => void
}

/**
 * The timer looks again after so many ticks, whatever is due; a stall of the process shows in a
 * look that comes late. By the default tick these are 250 ms, as other timers have them.
 */
const LOOK_TICKS = 5
/** So many are enough for the heartbeats that are overdue to leave, and far from a timeout. */
const TICKS_OF_STALL_MAX = 2

/**
 * Counts the ticks that pass, and wakes the node only when one passes that something depends on: an
 * idle follower that hears its leader is woken by its messages, and by a look now and then. Ticks
 * lie at multiples of `tickMs` and looks at multiples of LOOK_TICKS, so that they wake the thread
 * together with other timers.
 */
export class TickTimer {
  readonly #parts: TickTimerParts
  /** Ticks since the zero of the clock that the core has been told of. */
  #countedTick = 0
  /** The timer fires then. */
  #dueTick = Infinity
  #cancel: (() => void) | null = null

  constructor(parts: TickTimerParts) {
    this.#parts = parts
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
   * Takes the ticks that have passed since the last call. After a stall it counts two at
   * most: the process did not run then, so the leader was not silent, and to count all that were
   * missed would begin an election.
   */
  take(): number {
    const nowTick = this.#passedTicks()
    const passed = nowTick - this.#countedTick
    if (passed <= 0) return 0
    this.#countedTick = nowTick
    return nowTick > this.#dueTick ? Math.min(passed, TICKS_OF_STALL_MAX) : passed
  }

  /** @param quietTicks how many ticks may pass before one that something depends on. */
  plan(quietTicks: number): void {
    const { tickMs, clock, scheduler, onDue } = this.#parts
    const untilLook = LOOK_TICKS - (this.#countedTick % LOOK_TICKS)
    const dueTick = this.#countedTick + Math.min(quietTicks + 1, untilLook)
    if (this.#cancel !== null) {
      // Left alone when it fires earlier: a timer that is cancelled wakes the thread all the same.
      if (dueTick >= this.#dueTick) return
      this.#cancel()
    }
    this.#dueTick = dueTick
    // A timer of Node runs up to a millisecond early otherwise, and once more.
    const delayMs = Math.max(0, Math.ceil(dueTick * tickMs - clock.monotonicMs()))
    this.#cancel = scheduler.after(delayMs, () => {
      this.#cancel = null
      onDue()
    })
  }

  #passedTicks(): number {
    const { tickMs, clock } = this.#parts
    return Math.floor(clock.monotonicMs() / tickMs)
  }
}
