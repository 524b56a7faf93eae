import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import type { Entity } from './define.ts'

/** The members of a body, or of the fields of a command, at a feature level. */
export interface MembersAtLevel {
  /** Members that the level knows; the object itself where that is all of it. */
  readonly known: JsonObject
  /** Names of fields that a later level brings, in the order of the object. */
  readonly later: readonly string[]
}

/**
 * Takes out the fields that a later feature level brings: until it is in force they count as
 * unknown.
 */
export function membersAt(entity: Entity, members: JsonObject, level: number): MembersAtLevel {
  const later = Object.keys(members).filter((name) => sinceOf(entity, name) > level)
  if (later.length === 0) return { known: members, later }
  const known: Record<string, Json> = { ...members }
  for (const name of later) delete known[name]
  return { known, later }
}

/** The feature level that a write of these fields needs. */
export function levelOf(entity: Entity, fields: Readonly<Record<string, unknown>> = {}): number {
  return Object.keys(fields).reduce(
    (level, name) => Math.max(level, sinceOf(entity, name)),
    entity.since,
  )
}

function sinceOf(entity: Entity, name: string): number {
  return Object.hasOwn(entity.fields, name) ? (entity.fields[name]?.writableSince ?? 1) : 1
}
