import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import type { Entity } from './define-entity.ts'

/**
 * Members of a body, or fields of a command, divided by whether they may be written at the current
 * feature level.
 */
interface MembersAtLevel {
  /** Members that may be written at the feature level; the original object if all may. */
  readonly known: JsonObject
  /**
   * Names of the members that may be written only from a later feature level, in the order of the
   * object.
   */
  readonly later: readonly string[]
}

/**
 * Removes fields that may be written only from a later feature level; until the cluster is at that
 * level, requests treat these fields as unknown.
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
