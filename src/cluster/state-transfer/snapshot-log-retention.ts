import type { Clock } from '../../lib/clock.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import type { ConsensusThreadStatus } from '../thread-channel.ts'

/**
 * If a member makes no progress for this time after its snapshot, the log keeps no entries for it
 * any more.
 */
const IDLE_MS_MAX = 60_000

interface CatchUp {
  /** Id of the transfer. A later transfer to the same member replaces it. */
  id: number
  /** The member needs the entries after this index. */
  index: Index
  isSending: boolean
  movedMs: number
  /**
   * True if the entries that the member needs were compacted, so that it will get another snapshot.
   */
  isOutrun: boolean
}

/**
 * Members to which this leader sends a snapshot. Within `catchUpBytes`, the log keeps the entries
 * after the snapshot until the member follows the log again. Otherwise, if a transfer takes longer
 * than the log normally keeps entries, each transfer would be followed by another one.
 */
export class SnapshotLogRetention {
  readonly #alarms: AlarmRaiser
  readonly #clock: Clock
  readonly #isNear: (index: Index) => boolean
  readonly #members = new Map<NodeId, CatchUp>()

  /**
   * @param isNear whether a member with the log up to this index can catch up from the entries that
   * the log normally keeps.
   */
  constructor(alarms: AlarmRaiser, clock: Clock, isNear: (index: Index) => boolean) {
    this.#alarms = alarms
    this.#clock = clock
    this.#isNear = isNear
  }

  /**
   * Called when a transfer begins.
   * @param index at most the position of the snapshot that will be opened.
   */
  begin(id: number, to: NodeId, index: Index): void {
    const movedMs = this.#clock.monotonicMs()
    const isOutrun = this.#members.get(to)?.isOutrun ?? false
    this.#members.set(to, { id, index, isSending: true, movedMs, isOutrun })
  }

  opened(id: number, index: Index): void {
    for (const member of this.#members.values()) {
      if (member.id !== id) continue
      member.index = index
      member.isOutrun = false
    }
  }

  over(id: number, isSent: boolean): void {
    for (const [to, member] of this.#members) {
      if (member.id !== id) continue
      member.isSending = false
      member.movedMs = this.#clock.monotonicMs()
      if (!isSent) this.#forget(to)
    }
  }

  /**
   * Called with each status of the consensus thread. Stops keeping entries for members that follow
   * the log again.
   */
  look({ role, peers }: ConsensusThreadStatus): void {
    const nowMs = this.#clock.monotonicMs()
    for (const [to, member] of this.#members) {
      const match = peers.find(({ id }) => id === to)?.matchIndex ?? null
      if (role !== 'leader' || match === null) {
        // The transfer is forgotten: a new leader starts its own transfers, and a former member
        // needs none.
        this.#forget(to)
        continue
      }
      if (match > member.index) {
        member.index = match
        member.movedMs = nowMs
      }
      if (member.isSending) continue
      const isFollowing = match >= member.index && this.#isNear(match)
      if (isFollowing || nowMs - member.movedMs > IDLE_MS_MAX) this.#forget(to)
    }
  }

  /** Index after which the log should keep its entries; Infinity if no member needs that. */
  get neededAfter(): Index {
    return Math.min(...[...this.#members.values()].map(({ index }) => index))
  }

  /** Called when the log through `index` was compacted although a member may need it. */
  noteCut(index: Index): void {
    for (const [to, member] of this.#members) {
      if (member.isOutrun || member.index >= index) continue
      member.isOutrun = true
      this.#alarms.raise('SNAPSHOT_LAGGING', { member: to })
    }
  }

  #forget(to: NodeId): void {
    this.#members.delete(to)
    this.#alarms.clear('SNAPSHOT_LAGGING', to)
  }
}
