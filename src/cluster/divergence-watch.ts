import type { Index, NodeId } from '../raft/types.ts'
import type { Alarms } from './alarms.ts'

/**
 * Raises STATE_DIVERGED about members whose state is not that of this controller. Whose state is wrong is told by the
 * majority: only a controller that differs from most of the others doubts its own answers, or one sick member would take
 * all that see it out of service.
 */
export class DivergenceWatch {
  readonly #alarms: Alarms
  /** Start of the process that held the other state. */
  readonly #diverged = new Map<NodeId, { readonly at: Index; readonly startedAtMs: number }>()
  #members: readonly NodeId[] = []

  constructor(alarms: Alarms) {
    this.#alarms = alarms
  }

  /** @param at index at which its state differs; null: nothing is known against it now. */
  note(id: NodeId, startedAtMs: number, at: Index | null): void {
    const known = this.#diverged.get(id)
    if (at !== null) this.#diverged.set(id, { at, startedAtMs })
    else if (known !== undefined && known.startedAtMs !== startedAtMs) this.#settle(id)
    else return
    this.#tell()
  }

  /** Those who are members no longer hold no state of this cluster. */
  keep(members: readonly NodeId[]): void {
    const isSame = members.length === this.#members.length
    this.#members = members
    const gone = [...this.#diverged.keys()].filter((id) => !members.includes(id))
    for (const id of gone) this.#settle(id)
    if (gone.length > 0 || !isSame) this.#tell()
  }

  /** It started again, and so from what it had on disk or was sent: it is compared anew. */
  #settle(id: NodeId): void {
    this.#diverged.delete(id)
    this.#alarms.clear('STATE_DIVERGED', id)
  }

  #tell(): void {
    const isOdd = this.#diverged.size > this.#members.length - this.#diverged.size
    for (const [id, { at }] of this.#diverged) {
      const text = `the state of ${id} and of this controller differ at index ${at}`
      this.#alarms.raise('STATE_DIVERGED', text, id, isOdd)
    }
  }
}
