import { type Entity, isRecordInKindScope } from '../../entities/define-entity.ts'
import type { KindName, RecordOf } from '../../entities/kind-records.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import { RecordChanges } from '../records/record-changes.ts'
import { isEffectivePolicy } from '../records/roles.ts'
import type { Table } from '../records/table.ts'

/**
 * Creates an empty change set for each kind of record that affects access or client views (the
 * services that a client sees).
 */
const nothingChanged = () => ({
  apiSession: new Map<string, RecordChange<'apiSession'>>(),
  config: new Map<string, RecordChange<'config'>>(),
  configType: new Map<string, RecordChange<'configType'>>(),
  identity: new Map<string, RecordChange<'identity'>>(),
  postureCheck: new Map<string, RecordChange<'postureCheck'>>(),
  service: new Map<string, RecordChange<'service'>>(),
  serviceConfig: new Map<string, RecordChange<'serviceConfig'>>(),
  servicePolicy: new Map<string, RecordChange<'servicePolicy'>>(),
})
export type AccessRelevantKind = keyof ReturnType<typeof nothingChanged>

/** Changes to the records of one kind, by id. */
export type KindChangesById<K extends AccessRelevantKind> = ReadonlyMap<string, RecordChange<K>>

/** Changes by one log entry that affect access, by kind. */
export type AccessChanges = { readonly [K in AccessRelevantKind]: KindChangesById<K> }

/**
 * Creates the recorder for writes that affect access. Subscribers of `ChangeFeed` have separate
 * recorders, because the apply step clears this recorder at the end of each entry.
 */
export function createAccessChangeRecorder(): RecordChanges {
  return new RecordChanges(Object.keys(nothingChanged()) as AccessRelevantKind[])
}

/**
 * Returns and clears the recorded changes. A record outside the scope of its kind, or an expired
 * policy, counts as missing.
 */
export function takeAccessChanges(
  writes: RecordChanges,
  tables: ReadonlyMap<KindName, Table>,
): AccessChanges {
  const changes = nothingChanged()
  const byKind = changes as Readonly<Record<AccessRelevantKind, unknown>> as Readonly<
    Record<AccessRelevantKind, Map<string, RecordChange>>
  >
  for (const change of writes.take(tables)) {
    const entity = tables.get(change.kind)?.entity
    const seen = entity === undefined ? change : changeWithinScope(entity, change)
    if (seen.before !== seen.after) byKind[change.kind as AccessRelevantKind].set(change.id, seen)
  }
  return changes
}

/**
 * The change as it appears within the scope of its kind: a record outside of this scope, or an
 * expired policy, counts as missing before or after the change.
 */
export function changeWithinScope<K extends KindName>(
  entity: Entity,
  change: RecordChange<K>,
): RecordChange<K> {
  if (entity.scope === null && entity.name !== 'servicePolicy') return change
  const seen = (record: RecordOf<K> | undefined): RecordOf<K> | undefined =>
    record !== undefined && isRecordInKindScope(entity, record) && isEffectivePolicy(record)
      ? record
      : undefined
  return { ...change, before: seen(change.before), after: seen(change.after) }
}

export function isSameStringList(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((text, at) => text === b[at]))
}
