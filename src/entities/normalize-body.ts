import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import { Problem } from '../lib/problems.ts'
import { checkFields, isObject } from './check-fields.ts'
import type { Entity, RequestMode } from './define-entity.ts'
import type { Field } from './fields.ts'
import { pickChangedMembers, mergeMembers, pickNamedMembers } from './nested-schemas.ts'

export interface NormalizedFields {
  /**
   * Fields for the command: all writable fields for create and replace, only the changed ones for
   * patch.
   */
  readonly fields: JsonObject
  /** Names of the ignored members, in the order of the body; at most `ignoredFieldsMax`. */
  readonly ignoredFields: readonly string[]
}

const ignoredFieldsMax = 64
const ignoredNameCharactersMax = 128

function sortedUnique(values: readonly string[]): string[] {
  return [...new Set(values)].sort()
}

function normaliseValue(field: Field, value: Json): Json {
  switch (field.kind) {
    case 'roleList':
    case 'attributes':
    case 'references':
      return sortedUnique(value as readonly string[])
    case 'text':
    case 'choice':
    case 'reference':
      return value === '' ? field.zero : value
    case 'object':
    case 'objects':
      return wholeOf(field, pickNamedMembers(field.schema, value))
    default:
      return value
  }
}

/**
 * Completes the value of an object that patches are merged into: omitted members get their initial
 * values.
 */
function wholeOf(field: Field, value: Json): Json {
  return field.mergedOnto !== null && isObject(value)
    ? mergeMembers(field.mergedOnto, value)
    : value
}

/**
 * Whether a patch leaves the field unchanged: a map that contains only nulls changes nothing,
 * whereas an empty map clears the field.
 */
function isUntouched(field: Field, value: Json): boolean {
  if (field.kind !== 'map' || value === null || typeof value !== 'object') return value === null
  const members = Object.values(value)
  return members.length > 0 && members.every((member) => member === null)
}

/**
 * Converts a request body that is valid by `requestSchema` into the fields of a command. Create and
 * replace: absent and null give the zero value. Patch: absent and null leave the field unchanged;
 * maps are replaced completely, and changes are merged into objects that support it. Unknown
 * members and read-only members are ignored and reported; after creation, so are members that are
 * fixed at creation.
 * @throws {Problem} COULD_NOT_VALIDATE with the invalid field.
 */
export function normalizeBody(
  entity: Entity,
  mode: RequestMode,
  body: JsonObject,
): NormalizedFields {
  const fields: Record<string, Json> = {}
  for (const name of entity.fieldNames) {
    const field = entity.fields[name]
    if (field === undefined || !isWritable(field, mode)) continue
    const value = Object.hasOwn(body, name) ? (body[name] ?? null) : null
    if (mode === 'patch') {
      const changed = changeOf(field, value)
      if (changed !== null) fields[name] = changed.to
    } else {
      fields[name] = value === null ? field.zero : normaliseValue(field, value)
    }
  }
  const ignoredFields = ignoredIn(entity, mode, body)
  const fault = checkFields(entity, fields)
  if (fault !== null) throw new Problem('COULD_NOT_VALIDATE', { fault })
  return { fields, ignoredFields }
}

/** The new value that a patch gives to the field; null if the patch leaves the field unchanged. */
function changeOf(field: Field, value: Json): { readonly to: Json } | null {
  if (isUntouched(field, value)) return null
  if (field.mergedOnto === null) return { to: normaliseValue(field, value) }
  const changes = pickChangedMembers(field.schema, value)
  return Object.keys(changes).length === 0 ? null : { to: changes }
}

function isWritable(field: Field, mode: RequestMode): boolean {
  return field.settable === 'always' || (field.settable === 'create' && mode === 'create')
}

function ignoredIn(entity: Entity, mode: RequestMode, body: JsonObject): string[] {
  const ignored: string[] = []
  for (const name of Object.keys(body)) {
    const field = Object.hasOwn(entity.fields, name) ? entity.fields[name] : undefined
    if (field !== undefined && isWritable(field, mode)) continue
    if (Object.hasOwn(entity.body, name) && entity.body[name]?.in.includes(mode) === true) continue
    ignored.push(name.slice(0, ignoredNameCharactersMax))
    if (ignored.length === ignoredFieldsMax) break
  }
  return ignored
}
