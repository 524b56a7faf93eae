import { removeSessions } from '../fsm/restored-state.ts'
import type { NormalizedRecord } from '../fsm/records/record-blocks.ts'
import {
  type KindReplacement,
  planRecordReplacement,
  restoredKinds,
} from '../fsm/cluster/replacement.ts'
import type { State } from '../fsm/records/state.ts'

/** Changes that a restore would make to records of one kind. */
export interface KindChangeCounts {
  readonly kind: string
  /** Number of records that only the backup contains. */
  readonly created: number
  readonly changed: number
  /** Number of records that only the live state contains. */
  readonly deleted: number
  /** The first ids of each group in order, at most `SHOWN_IDS_MAX`. */
  readonly ids: Readonly<Record<'created' | 'changed' | 'deleted', readonly string[]>>
}

const SHOWN_IDS_MAX = 20

/**
 * Changes that a restore of `backup` would make in the cluster with the state `live`. The restore
 * itself also calls `planRecordReplacement`.
 * @param backup modified by this call, which removes its sessions, because a restore never restores
 * sessions.
 */
export function planRestoreChanges(live: State, backup: State): KindReplacement[] {
  removeSessions(backup)
  const isSame = live.clusterId === backup.clusterId
  return planRecordReplacement(
    live,
    shapedFor(live, backup),
    isSame ? null : live.position.index + 1,
  )
}

function* shapedFor(live: State, backup: State): Generator<NormalizedRecord> {
  for (const kind of restoredKinds) {
    for (const { record } of backup.table(kind).rows.values()) yield live.shaped(kind, record)
  }
}

/**
 * Counts by kind, for display and for scripts. Unchanged records are not counted, nor access marks,
 * which controllers derive from sessions and no API shows.
 */
export function countRestoreChanges(replacement: readonly KindReplacement[]): KindChangeCounts[] {
  const shownKinds = replacement.filter(({ kind }) => kind !== 'accessMark')
  return shownKinds.map(({ kind, created, changed, deleted }) => ({
    kind,
    created: created.length,
    changed: changed.length,
    deleted: deleted.length,
    ids: { created: idsOf(created), changed: idsOf(changed), deleted: shown([...deleted]) },
  }))
}

function idsOf(records: readonly NormalizedRecord[]): string[] {
  return shown(records.map(({ record }) => record.id))
}

function shown(ids: string[]): string[] {
  return ids.sort().slice(0, SHOWN_IDS_MAX)
}
