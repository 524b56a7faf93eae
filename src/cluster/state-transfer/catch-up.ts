import type { Clock } from '../../lib/clock.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import type { HostStatus } from '../link.ts'

/** A member that has a snapshot and takes no step from there is not waited for any longer. */
const IDLE_MS_MAX = 60_000

interface CatchUp {
  /** Id of the transfer; a later one takes the place of an earlier one. */
  id: number
  /** Index after which entries are needed. */
  index: Index
  isSending: boolean
  movedMs: number
  /** True: the entries that it needs are gone, and it will be sent another snapshot. */
  isOutrun: boolean
}

/**
 * Members that the leader fills by a snapshot. Until each follows by itself again, the log
 * that comes after its snapshot is kept, or a transfer that takes longer than the log lasts would
 * be followed by another one, without end.
 */
export class SnapshotCatchUp {
  readonly #alarms: AlarmRaiser
  readonly #clock: Clock
  readonly #isNear: (index: Index) => boolean
  readonly #members = new Map<NodeId, CatchUp>()

  /** @param isNear whether one that has the log so far needs no care of its own any more. */
  constructor(alarms: AlarmRaiser, clock: Clock, isNear: (index: Index) => boolean) {
    this.#alarms = alarms
    this.#clock = clock
    this.#isNear = isNear
  }

  /** @param index no later than the position of the snapshot that will be opened. */
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

  /** Looks at every word of the host: a member that follows again is waited for no more. */
  look({ role, peers }: HostStatus): void {
    const nowMs = this.#clock.monotonicMs()
    for (const [to, member] of this.#members) {
      const match = peers.find(({ id }) => id === to)?.matchIndex ?? null
      if (role !== 'leader' || match === null) {
        // Another leader begins anew, and one that is no longer listed needs nothing.
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

  /** The log that follows is kept if it can be; Infinity: as far as this goes it need not be. */
  get neededAfter(): Index {
    return Math.min(...[...this.#members.values()].map(({ index }) => index))
  }

  /** The log through `index` is gone all the same. */
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
