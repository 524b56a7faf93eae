import type { Entity } from './define-entity.ts'
import type { Field, ReferenceDeleteEffect } from './fields.ts'
import { entities, entitiesByName } from './registry.ts'

/** A field that references records of another kind. */
export interface ReferencingField {
  readonly entity: Entity
  readonly name: string
  readonly field: Field
  readonly onDelete: ReferenceDeleteEffect
  /** Feature level from which deleting a referenced record is refused. */
  readonly refusedFrom: number
}

/** Referencing fields, by the table that they reference. */
const byTable: ReadonlyMap<string, readonly ReferencingField[]> = collect()

function collect(): Map<string, ReferencingField[]> {
  const found = new Map<string, ReferencingField[]>()
  for (const entity of entities) {
    // Skips views: a view has the same references as its table, and these references are collected
    // for the table.
    if (entity.table !== entity.name) continue
    for (const [name, field] of Object.entries(entity.fields)) {
      if (field.reference === null) continue
      const { to, onDelete, refusedFrom } = field.reference
      const table = entitiesByName.get(to)?.table ?? to
      const referrers = found.get(table) ?? []
      const from = refusedFrom ?? (onDelete === 'refuse' ? 0 : Infinity)
      referrers.push({ entity, name, field, onDelete, refusedFrom: from })
      found.set(table, referrers)
    }
  }
  return found
}

/** The fields by which records can reference records of a kind. */
export function findReferencingFields({ table }: Entity): readonly ReferencingField[] {
  return byTable.get(table) ?? []
}

/** Key of the index that finds the records whose field references the record with that id. */
export function referenceIndexKey({ field }: ReferencingField, id: string): string {
  return field.kind === 'roleList' ? `@${id}` : id
}
