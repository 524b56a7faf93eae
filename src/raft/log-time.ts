import { quorumValue } from './quorum.ts'
import type { Configuration, NodeId } from './types.ts'

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

  clear(): void {
    this.#offsetsMs.clear()
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
