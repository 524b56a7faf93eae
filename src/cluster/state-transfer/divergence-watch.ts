import type { Index, NodeId } from '../../raft/types.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import type { DigestComparison } from './digest-ring.ts'

/**
 * Raises STATE_DIVERGED for members whose state differs from this controller's. Two members cannot
 * tell which state is wrong, so this takes no member out of service; the {@link StateGuard} does so
 * by majority.
 */
export class DivergenceWatch {
  readonly #alarms: AlarmRaiser
  /** Index of the difference, and start of the process that had the other state. */
  readonly #diverged = new Map<NodeId, { readonly at: Index; readonly startedAtMs: number }>()

  constructor(alarms: AlarmRaiser) {
    this.#alarms = alarms
  }

  /** @param found null when there is no comparison. */
  note(id: NodeId, startedAtMs: number, found: DigestComparison | null): void {
    const known = this.#diverged.get(id)
    if (found?.isSame === false) {
      this.#diverged.set(id, { at: found.index, startedAtMs })
      this.#alarms.raise('STATE_DIVERGED', { member: id, index: found.index })
      return
    }
    if (known === undefined) return
    // The alarm ends when the member has restarted and so reloaded its state, or when its state is
    // equal again.
    const isAnew = known.startedAtMs !== startedAtMs
    if (isAnew || (found !== null && found.index > known.at)) this.#settle(id)
  }

  /** Drops alarms about former members. */
  keep(members: readonly NodeId[]): void {
    const gone = [...this.#diverged.keys()].filter((id) => !members.includes(id))
    for (const id of gone) this.#settle(id)
  }

  /** The state of this controller was replaced, so all comparisons start over. */
  clear(): void {
    for (const id of Array.from(this.#diverged.keys())) this.#settle(id)
  }

  #settle(id: NodeId): void {
    this.#diverged.delete(id)
    this.#alarms.clear('STATE_DIVERGED', id)
  }
}
