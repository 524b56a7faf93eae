import { type Entity, isInScope } from '../../entities/define.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import { RecordChanges } from '../records/record-changes.ts'
import type { Table } from '../records/table.ts'

export type Change = RecordChange

/** Kinds that decide what an identity may use and is shown of it, each with no change. */
const nothingChanged = () => ({
  apiSession: new Map<string, Change>(),
  config: new Map<string, Change>(),
  configType: new Map<string, Change>(),
  identity: new Map<string, Change>(),
  postureCheck: new Map<string, Change>(),
  service: new Map<string, Change>(),
  serviceConfig: new Map<string, Change>(),
  servicePolicy: new Map<string, Change>(),
})
export type WatchedKind = keyof ReturnType<typeof nothingChanged>

/** Changes of an entry that matter for access, by kind and id. */
export type AccessChanges = Readonly<Record<WatchedKind, ReadonlyMap<string, Change>>>

/**
 * Notes the writes that matter for access. Followers have notes of their own, as apply takes these
 * at the end of each entry.
 */
export function accessWrites(): RecordChanges {
  return new RecordChanges(Object.keys(nothingChanged()))
}

/** Takes what was noted. A record out of the scope of its kind counts as not there. */
export function takeAccessChanges(
  writes: RecordChanges,
  tables: ReadonlyMap<string, Table>,
): AccessChanges {
  const changes = nothingChanged()
  for (const change of writes.take(tables)) {
    const entity = tables.get(change.kind)?.entity
    const seen = entity === undefined ? change : changeInScope(entity, change)
    if (seen.before !== seen.after) changes[change.kind as WatchedKind].set(change.id, seen)
  }
  return changes
}

/** The change as the kind sees it: a record out of its scope counts as not there. */
export function changeInScope(entity: Entity, change: RecordChange): RecordChange {
  if (entity.scope === null) return change
  const seen = (record: EntityRecord | undefined): EntityRecord | undefined =>
    record !== undefined && isInScope(entity, record) ? record : undefined
  return { ...change, before: seen(change.before), after: seen(change.after) }
}

export function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((text, at) => text === b[at]))
}
