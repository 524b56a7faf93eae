import { prepareAuthPolicyBody } from '../../entities/auth-policy-body.ts'
import { normalizePostureField } from '../../entities/posture-values.ts'
import { isObject } from '../../entities/check-fields.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import { isSameJson, type Json, type JsonObject } from '../../lib/text/canonical-json.ts'
import { firstPemBlock } from '../../lib/text/pem-text.ts'
import { addDefaultValues } from '../records/body-members.ts'
import { type KindField, type ReferenceShape, defaultValues } from '../records/fields.ts'
import { entityForKind, type RecordKind } from '../records/kinds.ts'
import { readMemberAt, type ApiRecordRow, setMemberAt } from '../records/rows.ts'
import { normalizeFileExpiries, normalizeRecordExpiries } from './access-expiry.ts'
import { readDisabledFields, normalizeDisabled } from './disabled-state.ts'

/** Name of a field in the network file. */
export function fileFieldName({ name, alias }: KindField): string {
  return alias ?? name
}

/** The fields of a record that the network file contains: those that can be both set and read. */
export function networkFileFields(kind: RecordKind): readonly KindField[] {
  return kind.fields.filter(({ settable, isSecret, isShown, field, name }) => {
    if (settable === 'never' || isSecret) return false
    if (name === kind.idFrom) return true
    // True for a field that can be set only at creation and that responses compute: unless it is
    // computed from a stored field, a read returns another value under the same name.
    const isWish =
      field?.computed !== null && field?.computed !== undefined && settable === 'create'
    return isShown && (!isWish || field.computed?.from === 'field')
  })
}

/** Fields for the network file, from an API row; references are still ids. */
export function readNetworkFileFields(kind: RecordKind, row: ApiRecordRow): JsonObject {
  const fields: Record<string, Json> = {}
  for (const field of networkFileFields(kind)) {
    const value = field.name === kind.idFrom ? row.id : plainValue(field, row[field.name])
    if (!isUsual(kind, field, value)) fields[fileFieldName(field)] = sorted(value ?? null)
  }
  if (kind.id !== 'identity') return fields
  return {
    ...normalizeRecordExpiries(kind.id, fields),
    ...(row['isDefaultAdmin'] === true ? { isDefaultAdmin: true } : {}),
    ...readDisabledFields(row),
  }
}

/**
 * Replaces an embedded record with its ID or name, and a null that stands for an empty value with
 * that empty value.
 */
function plainValue({ reference, field }: KindField, value: Json | undefined): Json | undefined {
  if (value === null && field?.isNullIfEmpty === true) return field.zero
  if (!isObject(value) || !('entity' in value && 'id' in value)) return value
  return reference === null ? value['name'] : value['id']
}

/** True if the field has its default value, which the file omits. */
function isUsual(
  kind: RecordKind,
  { name, field, isRequired }: KindField,
  value: Json | undefined,
): boolean {
  if (value === undefined || value === null || value === '') return true
  const usual = defaultValues[kind.id]
  if (usual !== undefined && Object.hasOwn(usual, name)) return value === usual[name]
  if (isRequired) return false
  if (field !== null && field.computed === null && isSameJson(value, field.zero)) return true
  if (name === 'timeoutSeconds') return value === -1
  return (Array.isArray(value) || isObject(value)) && Object.keys(value).length === 0
}

/** Sorts the members of objects at every depth, so that equal networks yield equal files. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(sorted)
  if (!isObject(value)) return value
  const names = Object.keys(value).sort()
  return Object.fromEntries(names.map((name) => [name, sorted(value[name] ?? null)]))
}

/** Request body for a record, from its fields in the file. References are not resolved yet. */
export function toRequestBody(kind: RecordKind, fields: JsonObject): JsonObject {
  const body: Record<string, Json> = {}
  for (const field of networkFileFields(kind)) {
    const value = fields[fileFieldName(field)]
    if (value !== undefined) body[field.name] = value
  }
  return addDefaultValues(kind, body)
}

/**
 * Normalizes an object to the form that it has in an export: sorted, and without default values.
 * @throws {Problem} COULD_NOT_VALIDATE for content that the API would always refuse, regardless of
 * other records.
 */
export function canonicalFields(kind: RecordKind, fields: JsonObject): JsonObject {
  const entity = entityForKind(kind)
  if (entity === undefined) return fields
  const body = toRequestBody(kind, fields)
  const normal =
    kind.id === 'authPolicy'
      ? prepareAuthPolicyBody('create', body).fields
      : normalizeBody(entity, 'create', body).fields
  const result: Record<string, Json> = {}
  for (const field of networkFileFields(kind)) {
    const { name } = field
    const isStored = Object.hasOwn(normal, name) && entity.fields[name]?.computed === null
    // The `Default` auth policy exists in every network, so a reference to it is a default value.
    if (field.reference?.to === 'authPolicy' && body[name] === 'Default') continue
    const value = ownForm(kind, name, (isStored ? normal[name] : body[name]) ?? null)
    if (!isUsual(kind, field, value)) result[fileFieldName(field)] = sorted(value)
  }
  const ended = normalizeFileExpiries(kind.id, fields, result)
  if (kind.id !== 'identity') return ended
  const isDefaultAdmin = fields['isDefaultAdmin'] === true ? { isDefaultAdmin: true } : {}
  return { ...ended, ...isDefaultAdmin, ...normalizeDisabled(fields) }
}

/** Normalizes the value of a field whose normalization the descriptor does not define. */
function ownForm(kind: RecordKind, name: string, value: Json): Json {
  if (value === null) return null
  if (name === 'certPem') return firstPemBlock(String(value)) ?? value
  if (kind.id === 'postureCheck') return normalizePostureField(name, value)
  if (kind.id === 'terminator' && name === 'binding' && value === '') return 'transport'
  return value
}

/** Translates the name or ID of a record of the kind `to` into the ID or name. */
type Translate = (to: string, word: string, path: string) => string

/** Translates every reference in an object: names to ids, or ids to names. */
export function translateReferences(
  kind: RecordKind,
  fields: JsonObject,
  translate: Translate,
): JsonObject {
  let result: JsonObject = { ...fields }
  for (const field of networkFileFields(kind)) {
    const name = fileFieldName(field)
    const value = result[name]
    if (field.reference === null || value === undefined) continue
    result = { ...result, [name]: translatedValue(field.reference, value, name, translate) }
  }
  for (const { path, ...reference } of kind.nested) {
    const value = readMemberAt(result, path)
    if (value === undefined || value === null || value === '') continue
    const at = path.join('.')
    result = setMemberAt(result, path, translatedValue(reference, value, at, translate))
  }
  return result
}

function translatedValue(
  { to, shape }: ReferenceShape,
  value: Json,
  path: string,
  translate: Translate,
): Json {
  const each = (words: Json, of: (word: string) => string): Json =>
    Array.isArray(words)
      ? [...new Set((words as readonly Json[]).map(String).map(of))].sort()
      : words
  switch (shape) {
    case 'one':
      return value === '' ? value : translate(to, String(value), path)
    case 'many':
      return each(value, (word) => translate(to, word, path))
    case 'roles':
      return each(value, (role) =>
        role.startsWith('@') ? `@${translate(to, role.slice(1), path)}` : role,
      )
    case 'keys':
      return isObject(value)
        ? Object.fromEntries(
            Object.keys(value)
              .map((word) => [translate(to, word, path), value[word] ?? null] as const)
              .sort(([a], [b]) => (a < b ? -1 : 1)),
          )
        : value
  }
}
