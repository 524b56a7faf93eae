import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import { isObject } from './check-fields.ts'

/**
 * Makes the schema of nested objects more tolerant for requests: an optional member may also be
 * null. With `changes`, all members are optional.
 */
export function lenientSchema(schema: JsonObject, mode: 'whole' | 'changes'): JsonObject {
  const { properties, items, required, ...rest } = schema
  const values = schema['additionalProperties']
  if (isObject(items)) return { ...schema, items: lenientSchema(items, mode) }
  if (isListOf(values)) return { ...schema, additionalProperties: nullableSchema(values) }
  if (!isObject(properties)) return schema
  const names = mode === 'whole' && Array.isArray(required) ? (required as readonly string[]) : []
  const members = Object.entries(properties).map(([name, member]) => {
    const inner = lenientSchema(member as JsonObject, mode)
    return [name, names.includes(name) ? inner : nullableSchema(inner)]
  })
  return {
    ...rest,
    properties: Object.fromEntries(members) as JsonObject,
    ...(names.length === 0 ? {} : { required: names }),
  }
}

/**
 * Whether the schema describes a list. Go clients send an empty list as null, so a null list in a
 * map means an empty list, not an absent one.
 */
function isListOf(schema: Json | undefined): schema is JsonObject {
  return isObject(schema) && schema['type'] === 'array'
}

/** The same schema, extended so that null is also valid. */
export function nullableSchema(schema: JsonObject): JsonObject {
  const type = schema['type']
  const values = schema['enum']
  if (typeof type !== 'string') return { anyOf: [schema, { type: 'null' }] }
  if (!Array.isArray(values)) return { ...schema, type: [type, 'null'] }
  return { ...schema, type: [type, 'null'], enum: [...(values as readonly Json[]), null] }
}

/**
 * The members of a value that the schema lists. Members with the value null are dropped, because
 * null means absent; a null list in a map becomes an empty list.
 */
export function pickNamedMembers(schema: JsonObject, value: Json): Json {
  const { properties, items, additionalProperties: values } = schema
  if (Array.isArray(value)) {
    return isObject(items)
      ? (value as readonly Json[]).map((one) => pickNamedMembers(items, one))
      : value
  }
  if (isObject(value) && isListOf(values)) {
    return Object.fromEntries(Object.entries(value).map(([key, list]) => [key, list ?? []]))
  }
  if (!isObject(value) || !isObject(properties)) return value
  const kept: Record<string, Json> = {}
  for (const name of Object.keys(properties).sort()) {
    const member = Object.hasOwn(value, name) ? value[name] : null
    if (member !== null && member !== undefined) {
      kept[name] = pickNamedMembers(properties[name] as JsonObject, member)
    }
  }
  return kept
}

/**
 * Like `pickNamedMembers`, but also drops objects without members, because they change nothing.
 */
export function pickChangedMembers(schema: JsonObject, value: Json): JsonObject {
  const kept: Record<string, Json> = {}
  for (const [name, member] of Object.entries(pickNamedMembers(schema, value) as JsonObject)) {
    const inner = (schema['properties'] as JsonObject)[name] as JsonObject
    const changes = isObject(member) && isObject(inner) ? pickChangedMembers(inner, member) : member
    if (!isObject(changes) || Object.keys(changes).length > 0) kept[name] = changes
  }
  return kept
}

/**
 * Merges `changes` into `onto`: members that are objects in both are merged recursively; every
 * other member is replaced.
 */
export function mergeMembers(onto: JsonObject, changes: JsonObject): JsonObject {
  // Collects the members in a Map, because a member may be named `__proto__`: assigning that to an
  // object would set its prototype.
  const result = new Map(Object.entries(onto))
  for (const [name, change] of Object.entries(changes)) {
    const before = result.get(name)
    result.set(name, isObject(before) && isObject(change) ? mergeMembers(before, change) : change)
  }
  return Object.fromEntries(result)
}
