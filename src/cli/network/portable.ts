import { preparedAuthPolicy } from '../../api/preparers/auth-policy.ts'
import { normalisedPostureField } from '../../api/preparers/posture-check.ts'
import { isObject } from '../../entities/check.ts'
import { normalise } from '../../entities/normalise.ts'
import { isSameJson, type Json, type JsonObject } from '../../lib/text/canonical-json.ts'
import { CertificateError, parseCertificate } from '../../pki/certificate.ts'
import { pemBlocks } from '../../pki/pem.ts'
import { completedBody } from '../records/bodies.ts'
import { type KindField, type ReferenceShape, usualValues } from '../records/fields.ts'
import { entityOf, type Kind } from '../records/kinds.ts'
import { memberAt, type Row, withMember } from '../records/names.ts'
import { disabledOf, normalDisabled } from './disabled-state.ts'

/** Name that a file has for a field. */
export function fileName({ name, alias }: KindField): string {
  return alias ?? name
}

/** The fields that make up a record: those that can be set, and are shown again. */
export function portableFields(kind: Kind): readonly KindField[] {
  return kind.fields.filter(({ settable, isSecret, isShown, field, name }) => {
    if (settable === 'never' || isSecret) return false
    if (name === kind.idFrom) return true
    // A wish that is said once, when a record is made: its detail has something else under the
    // name.
    const isWish =
      field?.computed !== null && field?.computed !== undefined && settable === 'create'
    return isShown && (!isWish || field.computed?.from === 'field')
  })
}

/** Fields that a row has of its record, ids still in them. */
export function portableOf(kind: Kind, row: Row): JsonObject {
  const fields: Record<string, Json> = {}
  for (const field of portableFields(kind)) {
    const value = field.name === kind.idFrom ? row.id : plainValue(field, row[field.name])
    if (!isUsual(kind, field, value)) fields[fileName(field)] = sorted(value ?? null)
  }
  if (kind.id !== 'identity') return fields
  return {
    ...fields,
    ...(row['isDefaultAdmin'] === true ? { isDefaultAdmin: true } : {}),
    ...disabledOf(row),
  }
}

/** A record that is shown in place of its id. */
function plainValue({ reference }: KindField, value: Json | undefined): Json | undefined {
  if (!isObject(value) || !('entity' in value && 'id' in value)) return value
  return reference === null ? value['name'] : value['id']
}

/** True for a default value, which the file leaves out. */
function isUsual(
  kind: Kind,
  { name, field, isRequired }: KindField,
  value: Json | undefined,
): boolean {
  if (value === undefined || value === null || value === '') return true
  const usual = usualValues[kind.id]
  if (usual !== undefined && Object.hasOwn(usual, name)) return value === usual[name]
  if (isRequired) return false
  if (field !== null && field.computed === null && isSameJson(value, field.zero)) return true
  if (name === 'timeoutSeconds') return value === -1
  return (Array.isArray(value) || isObject(value)) && Object.keys(value).length === 0
}

/** Members in one order at every depth, so that equal networks give equal files. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(sorted)
  if (!isObject(value)) return value
  const names = Object.keys(value).sort()
  return Object.fromEntries(names.map((name) => [name, sorted(value[name] ?? null)]))
}

/**
 * The body of a record, as the API takes it, of its fields in the file. References are not looked
 * at.
 */
export function bodyOf(kind: Kind, fields: JsonObject): JsonObject {
  const body: Record<string, Json> = {}
  for (const field of portableFields(kind)) {
    const value = fields[fileName(field)]
    if (value !== undefined) body[field.name] = value
  }
  return completedBody(kind, body)
}

/**
 * The same object in the form that the API would give it: sorted, completed, without what goes
 * without saying.
 * @throws {Problem} COULD_NOT_VALIDATE for what the API would refuse without looking at other
 * records.
 */
export function canonical(kind: Kind, fields: JsonObject): JsonObject {
  const entity = entityOf(kind)
  if (entity === undefined) return fields
  const body = bodyOf(kind, fields)
  const normal =
    kind.id === 'authPolicy'
      ? preparedAuthPolicy('create', body).fields
      : normalise(entity, 'create', body).fields
  const result: Record<string, Json> = {}
  for (const field of portableFields(kind)) {
    const { name } = field
    const isStored = Object.hasOwn(normal, name) && entity.fields[name]?.computed === null
    // The policy that every network begins with goes without saying, by its name as by its id.
    if (field.reference?.to === 'authPolicy' && body[name] === 'Default') continue
    const value = ownForm(kind, name, (isStored ? normal[name] : body[name]) ?? null)
    if (!isUsual(kind, field, value)) result[fileName(field)] = sorted(value)
  }
  if (kind.id !== 'identity') return result
  if (fields['isDefaultAdmin'] === true) result['isDefaultAdmin'] = true
  return { ...result, ...normalDisabled(fields) }
}

/** Forms that descriptors do not know of. */
function ownForm(kind: Kind, name: string, value: Json): Json {
  if (value === null) return null
  if (name === 'certPem') return onlyCertificate(String(value))
  if (kind.id === 'postureCheck') return normalisedPostureField(name, value)
  if (kind.id === 'terminator' && name === 'binding' && value === '') return 'transport'
  return value
}

function onlyCertificate(pem: string): string {
  try {
    const [block] = pemBlocks(pem, 1)
    return block === undefined ? pem : parseCertificate(block.der).pem
  } catch (error) {
    // The API says what is wrong with it.
    if (error instanceof CertificateError || error instanceof RangeError) return pem
    throw error
  }
}

/** Translates a word that names a record of the kind `to`. */
export type Translate = (to: string, word: string, path: string) => string

/** The object with every reference translated: names to ids, or ids to names. */
export function translated(kind: Kind, fields: JsonObject, translate: Translate): JsonObject {
  let result: JsonObject = { ...fields }
  for (const field of portableFields(kind)) {
    const name = fileName(field)
    const value = result[name]
    if (field.reference === null || value === undefined) continue
    result = { ...result, [name]: translatedValue(field.reference, value, name, translate) }
  }
  for (const { path, ...reference } of kind.nested) {
    const value = memberAt(result, path)
    if (value === undefined || value === null || value === '') continue
    const at = path.join('.')
    result = withMember(result, path, translatedValue(reference, value, at, translate))
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
