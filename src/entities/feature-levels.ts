import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import type { Entity } from './define-entity.ts'

/**
 * Members of a body, or fields of a command, divided by whether the current feature level includes
 * them.
 */
interface MembersAtLevel {
  /**
   * Members that the feature level includes; the original object if it has no members of later
   * levels.
   */
  readonly known: JsonObject
  /** Names of the members that only a later feature level includes, in the order of the object. */
  readonly later: readonly string[]
}

/**
 * Removes fields that belong to later feature levels; until the cluster is at such a level,
 * requests treat these fields as unknown.
 */
export function membersAtLevel(entity: Entity, members: JsonObject, level: number): MembersAtLevel {
  const later = Object.keys(members).filter((name) => sinceOf(entity, name) > level)
  if (later.length === 0) return { known: members, later }
  const known: Record<string, Json> = { ...members }
  for (const name of later) delete known[name]
  return { known, later }
}

/** Feature level required to write these fields. */
export function requiredFeatureLevel(
  entity: Entity,
  fields: Readonly<Record<string, unknown>> = {},
): number {
  return Object.keys(fields).reduce(
    (level, name) => Math.max(level, sinceOf(entity, name)),
    entity.since,
  )
}

function sinceOf(entity: Entity, name: string): number {
  return Object.hasOwn(entity.fields, name) ? (entity.fields[name]?.writableSince ?? 1) : 1
}
