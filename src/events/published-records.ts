import { entities } from '../entities/registry.ts'
import type { KindName } from '../entities/kind-records.ts'
import type { Json } from '../lib/text/canonical-json.ts'
import type { EntityRecord } from '../lib/entity-record.ts'

/**
 * Kinds whose changes cause events of the namespace `entityChange`, sorted by name. The descriptor
 * of a kind determines which fields the events show.
 */
const publishedEntities = entities.filter(({ isPublished }) => isPublished)

export const publishedKinds: readonly KindName[] = publishedEntities.map(({ name }) => name)

interface Shape {
  readonly typeName: string
  readonly fields: readonly { readonly name: string; readonly isTime: boolean }[]
}

const shapes: ReadonlyMap<KindName, Shape> = new Map(
  publishedEntities.map(({ name: kind, publishedAs: typeName, fields }) => {
    const shown = Object.entries(fields).filter(([, field]) => field.published === 'shown')
    const shape = shown.map(([name, field]) => ({ name, isTime: field.kind === 'timestamp' }))
    return [kind, { typeName, fields: shape }]
  }),
)

/** Names of the entity types in entity change events; filters use these names. */
export const entityTypeNames: readonly string[] = [...shapes.values()]
  .map(({ typeName }) => typeName)
  .sort()

export function entityTypeName(kind: KindName): string {
  return shapes.get(kind)?.typeName ?? kind
}

/** The fields of a record that events show, with times in RFC 3339 form. */
export function toPublishedRecord(
  kind: KindName,
  record: EntityRecord,
): Readonly<Record<string, Json>> {
  const { id, createdAt, updatedAt } = record
  const shown: Record<string, Json> = {
    id,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
  }
  for (const { name, isTime } of shapes.get(kind)?.fields ?? []) {
    const value = record[name]
    if (value === undefined) continue
    shown[name] = isTime && typeof value === 'number' ? new Date(value).toISOString() : value
  }
  return shown
}

const EMPTY_WEIGHT = 128
const VALUE_WEIGHT = 24

/**
 * Approximate number of characters of a record as text; the record needs at least as many bytes of
 * memory.
 */
export function approximateRecordCharacters(record: EntityRecord | undefined): number {
  if (record === undefined) return 0
  let weight = EMPTY_WEIGHT
  for (const name in record) {
    const value = record[name] ?? null
    // Most values are strings, so their length is read directly.
    weight += VALUE_WEIGHT + (typeof value === 'string' ? value.length : valueWeight(value))
  }
  return weight
}

function valueWeight(value: Json): number {
  if (typeof value === 'string') return value.length
  if (value === null || typeof value !== 'object') return 8
  let weight = 2
  if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) weight += 4 + valueWeight(item)
    return weight
  }
  for (const [name, member] of Object.entries(value))
    weight += name.length + 4 + valueWeight(member)
  return weight
}
