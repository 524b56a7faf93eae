import { quorumValue } from './quorum.ts'
import type { Configuration, NodeId } from './types.ts'

/**
 * If log time is further ahead than this, clocks were wrong in the past, and log time is slowed
 * down.
 */
const SLEW_OVER_MS = 10_000
/** A longer tick means that the clock was set, or that the machine slept. */
const TICK_MS_MAX = 1_000

/**
 * The leader's estimate of the current time. Log time expires sessions on every controller, so a
 * single leader with a wrong clock must not move it. Log time exceeds the clock that a quorum has
 * reached by at most the allowed skew, and it never runs backwards.
 */
export class LogTime {
  /**
   * Peer's clock minus the local clock when its answer arrived. Network delay makes the value too
   * small, which is the safe direction.
   */
  #offsetsMs = new Map<NodeId, number>()

  /** Time elapsed on the local clock, without its jumps. */
  #elapsedMs = 0
  #tickedAtMs = 0
  /** `#elapsedMs` when `advance` last returned a stamp near the clocks, or a slowed one. */
  #slewedAtMs = 0

  clear(): void {
    this.#offsetsMs.clear()
    this.#slewedAtMs = this.#elapsedMs
  }

  /** Records the time at each tick. */
  pass(nowMs: number): void {
    this.#elapsedMs += Math.min(Math.max(0, nowMs - this.#tickedAtMs), TICK_MS_MAX)
    this.#tickedAtMs = nowMs
  }

  /**
   * The next stamp, from the last stamp and the clocks. If log time is far ahead because most
   * clocks were wrong, it advances at half their pace. It does not stop until the clocks catch up,
   * because a lifetime of seconds would then last that long.
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

  /** null when that peer has not answered this leader yet. */
  offsetMs(id: NodeId): number | null {
    return this.#offsetsMs.get(id) ?? null
  }

  /**
   * The latest time that the clocks of a quorum have reached; null until enough peers have
   * answered.
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
