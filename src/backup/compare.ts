import { withoutSessions } from '../fsm/restored-state.ts'
import type { ShapedRecord } from '../fsm/records/record-blocks.ts'
import { type KindReplacement, replacementOf, restoredKinds } from '../fsm/cluster/replacement.ts'
import type { State } from '../fsm/records/state.ts'

/** Changes of one kind that a restore would make. */
export interface KindChanges {
  readonly kind: string
  /** Records in the backup alone. */
  readonly created: number
  readonly changed: number
  /** Records in the live state alone. */
  readonly deleted: number
  /** First ids of each of the three in their order, at most so many as are shown. */
  readonly ids: Readonly<Record<'created' | 'changed' | 'deleted', readonly string[]>>
}

const SHOWN_IDS_MAX = 20

/**
 * Changes of a restore of `backup` into the cluster of `live`, by the function that makes them.
 * @param backup loses its sessions by this, as none of them comes back.
 */
export function replacementBetween(live: State, backup: State): KindReplacement[] {
  withoutSessions(backup)
  const isSame = live.clusterId === backup.clusterId
  return replacementOf(live, shapedFor(live, backup), isSame ? null : live.position.index + 1)
}

function* shapedFor(live: State, backup: State): Generator<ShapedRecord> {
  for (const kind of restoredKinds) {
    for (const { record } of backup.table(kind).rows.values()) yield live.shaped(kind, record)
  }
}

/** Kind by kind, for people and scripts; those that stay as they are are left out. */
export function changesOf(replacement: readonly KindReplacement[]): KindChanges[] {
  return replacement.map(({ kind, created, changed, deleted }) => ({
    kind,
    created: created.length,
    changed: changed.length,
    deleted: deleted.length,
    ids: { created: idsOf(created), changed: idsOf(changed), deleted: shown([...deleted]) },
  }))
}

function idsOf(records: readonly ShapedRecord[]): string[] {
  return shown(records.map(({ record }) => record.id))
}

function shown(ids: string[]): string[] {
  return ids.sort().slice(0, SHOWN_IDS_MAX)
}
