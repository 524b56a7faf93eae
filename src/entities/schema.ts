import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { Entity, RequestMode } from './define-entity.ts'
import type { Field } from './fields.ts'
import { lenientSchema, nullableSchema } from './nested-schemas.ts'
import { dateTimeSchema, linksSchema, textSchema, openObjectSchema } from './response-schemas.ts'

function sortedFields(entity: Entity): [string, Field][] {
  return Object.entries(entity.fields).sort(([a], [b]) => (a < b ? -1 : 1))
}

function isRequiredIn(field: Field, mode: RequestMode): boolean {
  if (!field.isRequired || mode === 'patch') return false
  return field.settable === 'always' || mode === 'create'
}

/** Schema of a body member; null when the member's value is not validated. */
function memberIn(
  entity: Entity,
  name: string,
  mode: RequestMode,
): { readonly schema: JsonObject; readonly isRequired: boolean } | null {
  const member = entity.body[name]
  if (member?.in.includes(mode) === true) {
    return { schema: member.schema, isRequired: member.requiredIn.includes(mode) }
  }
  const field = entity.fields[name]
  if (field === undefined || field.settable === 'never' || field.settable === 'proposer') {
    return null
  }
  return { schema: requestedSchema(field, mode), isRequired: isRequiredIn(field, mode) }
}

function requestedSchema(field: Field, mode: RequestMode): JsonObject {
  if (field.kind !== 'object' && field.kind !== 'objects') return field.schema
  const holdsChanges = mode === 'patch' && field.mergedOnto !== null
  return lenientSchema(field.schema, holdsChanges ? 'changes' : 'whole')
}

/** A schema that accepts objects. */
export type RequestSchema = JsonObject & { readonly type: 'object' }

/**
 * JSON Schema (2020-12) of a request body, for validation and OpenAPI. Unknown members are valid:
 * they are ignored and reported in the response. Properties are in alphabetical order, so that
 * every controller reports the same first fault.
 */
export function requestSchema(entity: Entity, mode: RequestMode): RequestSchema {
  const properties: Record<string, JsonObject> = {}
  const required: string[] = []
  for (const name of Object.keys({ ...entity.fields, ...entity.body }).sort()) {
    const member = memberIn(entity, name, mode)
    if (member === null) continue
    properties[name] = member.isRequired ? member.schema : nullableSchema(member.schema)
    if (member.isRequired) required.push(name)
  }
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) }
}

function shownSchema(field: Field): JsonObject {
  if (field.kind === 'timestamp')
    return field.shown === 'always' ? nullableSchema(dateTimeSchema) : dateTimeSchema
  // Limits are removed, because records that were written before a limit existed may exceed it.
  const { maxLength, minItems, maxItems, maxProperties, ...schema } = field.schema
  if (field.isNullIfEmpty) return nullableSchema(schema)
  if (field.kind === 'choice') return { type: 'string' }
  return field.zero === null && field.kind === 'text' ? nullableSchema(schema) : schema
}

/** JSON Schema of `data` of a detail response, and of each row of a list. */
export function detailSchema(entity: Entity): JsonObject {
  const properties: Record<string, JsonObject> = {
    _links: linksSchema,
    createdAt: dateTimeSchema,
    id: textSchema,
    updatedAt: dateTimeSchema,
  }
  const required = ['_links', 'createdAt', 'id', 'updatedAt']
  for (const [name, field] of sortedFields(entity)) {
    if (field.shown === 'never') continue
    properties[name] = shownSchema(field)
    if (field.shown === 'always') required.push(name)
  }
  return { type: 'object', properties, required: required.sort() }
}

const neverSent = 'Declared for the sake of the API contract, and never sent.'

/**
 * Adds the members of another detail to a detail's schema, as optional members, because the OpenAPI
 * document must list them.
 */
export function withOptionalMembers(detail: JsonObject, other: JsonObject): JsonObject {
  const own = detail['properties'] as Readonly<Record<string, JsonObject>>
  const declared: Record<string, JsonObject> = {}
  const others = other['properties'] as Readonly<Record<string, JsonObject>>
  for (const [name, schema] of Object.entries(others)) {
    if (!Object.hasOwn(own, name)) declared[name] = { ...schema, description: neverSent }
  }
  return { ...detail, properties: { ...own, ...declared } }
}

/** JSON Schema of `data` of a create response. */
export const createdSchema: JsonObject = openObjectSchema({ _links: linksSchema, id: textSchema })

/** JSON Schema of `data` in the responses to update, patch and delete. */
export const emptySchema: JsonObject = { type: 'object' }
