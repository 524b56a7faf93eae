import { quorumValue } from './quorum.ts'
import type { Configuration, NodeId } from './types.ts'

/** Ahead of the clocks by more, it is no skew any more. */
const SLEW_OVER_MS = 10_000
/** A tick that took longer says that the clock was set, or that the machine slept. */
const TICK_MS_MAX = 1_000

/**
 * The leader's judgement of what time it is. Log time expires sessions on every controller, so one
 * leader with a wrong clock must not move it: it never passes the clock that a quorum has reached
 * by more than the allowed skew, and it never runs back.
 */
export class LogTime {
  /**
   * Peer's clock minus ours when its answer arrived; short by the way it took, which errs to the
   * safe side.
   */
  #offsetsMs = new Map<NodeId, number>()

  /** Time by the clock of this node, without its jumps. */
  #elapsedMs = 0
  #tickedAtMs = 0
  /** `#elapsedMs` when the last stamp that was ahead of the clocks was given. */
  #slewedAtMs = 0

  clear(): void {
    this.#offsetsMs.clear()
    this.#slewedAtMs = this.#elapsedMs
  }

  /** Takes the time at each tick. */
  pass(nowMs: number): void {
    this.#elapsedMs += Math.min(Math.max(0, nowMs - this.#tickedAtMs), TICK_MS_MAX)
    this.#tickedAtMs = nowMs
  }

  /**
   * The next stamp by the last one and by what the clocks say. Log time that is far ahead, as a
   * majority's clocks were wrong, goes on at half their pace. If it stood still until they have
   * caught up, what ends after some seconds would not end for as long.
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

  /** null when that peer has not answered in this leadership. */
  offsetMs(id: NodeId): number | null {
    return this.#offsetsMs.get(id) ?? null
  }

  /** The latest time that a quorum's clocks have reached; null before enough of them are known. */
  quorumMs(configuration: Configuration, self: NodeId, nowMs: number): number | null {
    const reached = quorumValue(configuration, (id) => {
      if (id === self) return nowMs
      const offsetMs = this.#offsetsMs.get(id)
      return offsetMs === undefined ? 0 : nowMs + offsetMs
    })
    return reached > 0 ? reached : null
  }
}
