import { quorumValue } from './quorum.ts'
import type { Configuration, NodeId } from './types.ts'

/**
 * If log time is further ahead of the clocks than this, some clocks were wrong in the past, and log
 * time runs at half speed.
 */
const SLEW_OVER_MS = 10_000
/**
 * Maximum interval between two ticks that counts as elapsed. After a longer interval, someone has
 * probably set the clock, or the machine or the process was suspended.
 */
const TICK_MS_MAX = 1_000

/**
 * The leader's estimate of the current time. Log time expires sessions on every controller, so one
 * leader with a wrong clock must not change it much: its clock moves log time at most by the
 * allowed skew beyond the time that the clocks of a quorum have reached. Timestamps never decrease;
 * only a reset by an operator sets log time back.
 */
export class LogTime {
  /**
   * For each peer: its clock minus the local clock when its response arrived. Network delay makes
   * the value too small, so log time can be too early but not too late.
   */
  #offsetsMs = new Map<NodeId, number>()

  /**
   * Time elapsed on the local clock; of each interval between two ticks, at most `TICK_MS_MAX`
   * counts.
   */
  #elapsedMs = 0
  #tickedAtMs = 0
  /**
   * Value of `#elapsedMs` from which `advance` counts the elapsed time while log time runs at half
   * speed.
   */
  #slewedAtMs = 0

  clear(): void {
    this.#offsetsMs.clear()
    this.#slewedAtMs = this.#elapsedMs
  }

  /** Counts the time since the last tick. The caller must call this method at each tick. */
  pass(nowMs: number): void {
    this.#elapsedMs += Math.min(Math.max(0, nowMs - this.#tickedAtMs), TICK_MS_MAX)
    this.#tickedAtMs = nowMs
  }

  /**
   * The next timestamp, derived from the last timestamp and the clocks. If log time is far ahead
   * because most clocks were wrong, it advances at half the speed of the clocks. Log time does not
   * stop meanwhile: otherwise, a lifetime of a few seconds would last until the clocks catch up.
   */
  advance(lastMs: number, clockMs: number): number {
    if (lastMs - clockMs <= SLEW_OVER_MS) {
      this.#slewedAtMs = this.#elapsedMs
      // @guard log-time-never-runs-back
      return Math.max(lastMs, clockMs)
    }
    const passedMs = Math.floor((this.#elapsedMs - this.#slewedAtMs) / 2)
    this.#slewedAtMs += passedMs * 2
    return lastMs + passedMs
  }

  observe(id: NodeId, clockMs: number, nowMs: number): void {
    this.#offsetsMs.set(id, clockMs - nowMs)
  }

  /**
   * The peer's clock minus the local clock, ms; null until the peer has answered a heartbeat of
   * this leader.
   */
  offsetMs(id: NodeId): number | null {
    return this.#offsetsMs.get(id) ?? null
  }

  /**
   * The latest time that the clocks of a quorum have reached; null until enough peers have
   * responded.
   */
  quorumMs(configuration: Configuration, self: NodeId, nowMs: number): number | null {
    const reached = quorumValue(configuration, (id) => {
      if (id === self) return nowMs
      const offsetMs = this.#offsetsMs.get(id)
      return offsetMs === undefined ? 0 : nowMs + offsetMs
    })
    return reached > 0 ? reached : null
  }
}
