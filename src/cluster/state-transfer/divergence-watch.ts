import type { Index, NodeId } from '../../raft/types.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import type { DigestComparison } from './digest-ring.ts'

/**
 * Raises STATE_DIVERGED about members whose state is not that of this controller. Two that differ
 * can not tell whose is wrong, so it takes nobody out of service: that is for the
 * {@link StateGuard}, which asks for a majority.
 */
export class DivergenceWatch {
  readonly #alarms: AlarmRaiser
  /** Start of the process that held the other state. */
  readonly #diverged = new Map<NodeId, { readonly at: Index; readonly startedAtMs: number }>()

  constructor(alarms: AlarmRaiser) {
    this.#alarms = alarms
  }

  /** @param found null: nothing is known against it now. */
  note(id: NodeId, startedAtMs: number, found: DigestComparison | null): void {
    const known = this.#diverged.get(id)
    if (found?.isSame === false) {
      this.#diverged.set(id, { at: found.index, startedAtMs })
      this.#alarms.raise('STATE_DIVERGED', { member: id, index: found.index })
      return
    }
    if (known === undefined) return
    // It started again, and so from what it had on disk or was sent; or its state is the same
    // again.
    const isAnew = known.startedAtMs !== startedAtMs
    if (isAnew || (found !== null && found.index > known.at)) this.#settle(id)
  }

  /** Keeps these alone: those who are members no longer hold no state of this cluster. */
  keep(members: readonly NodeId[]): void {
    const gone = [...this.#diverged.keys()].filter((id) => !members.includes(id))
    for (const id of gone) this.#settle(id)
  }

  /** The state of this controller was replaced: all are compared with it anew. */
  clear(): void {
    for (const id of Array.from(this.#diverged.keys())) this.#settle(id)
  }

  #settle(id: NodeId): void {
    this.#diverged.delete(id)
    this.#alarms.clear('STATE_DIVERGED', id)
  }
}
