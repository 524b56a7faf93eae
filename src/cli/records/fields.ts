import { detailSchema, requestSchema } from '../../entities/schema.ts'
import type { Entity } from '../../entities/define-entity.ts'
import type { Field } from '../../entities/fields.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'

/**
 * How a field refers to records. `one` and `many`: by IDs. `roles`: by IDs with the prefix `@`,
 * mixed with role attributes. `keys`: the keys of the map are IDs.
 */
export interface ReferenceShape {
  /** Descriptor name of the referenced kind. */
  readonly to: string
  readonly shape: 'one' | 'many' | 'roles' | 'keys'
}

/** A field in the bodies and details of a kind that a user can write or read. */
export interface KindField {
  readonly name: string
  /**
   * For a field whose name ends in `Id`: the other name of the field, with which a user can give
   * the record's name.
   */
  readonly alias: string | null
  readonly settable: 'always' | 'create' | 'never'
  readonly isRequired: boolean
  /** True: a patch must contain the field, although its value cannot change. */
  readonly isRepeated: boolean
  /**
   * JSON Schema of the value in a body; for a field that cannot be set, of the value in a detail
   * response.
   */
  readonly schema: JsonObject
  readonly reference: ReferenceShape | null
  /** True for a password or another secret that the API never returns. */
  readonly isSecret: boolean
  readonly isShown: boolean
  /**
   * True if a patch replaces the whole value; false if it changes only the members that it
   * contains.
   */
  readonly isReplacedWhole: boolean
  /** Default members of an object, for those that the body does not contain at creation. */
  readonly filledFrom: JsonObject | null
  readonly field: Field | null
}

/** A reference inside an object, such as `primary.extJwt.allowedSigners`. */
export interface NestedReference extends ReferenceShape {
  readonly path: readonly string[]
}

/**
 * Default values, by kind, of fields that a user may omit although the request must contain them.
 */
export const defaultValues: Readonly<Record<string, JsonObject>> = {
  identity: { type: 'Default', isAdmin: false },
}

type Properties = Readonly<Record<string, JsonObject>>

const SECRET = /(password|secret)$/i
const baseFields: ReadonlySet<string> = new Set(['_links', 'createdAt', 'id', 'updatedAt'])

/**
 * The fields of a kind, without those that all kinds have: first the fields that can be written, in
 * the order of the descriptor.
 */
export function kindFields(entity: Entity): readonly KindField[] {
  const create = requestSchema(entity, 'create')
  const patch = schemaProperties(requestSchema(entity, 'patch'))
  const detail = schemaProperties(detailSchema(entity))
  const names = new Set([...Object.keys(entity.fields), ...Object.keys(entity.body)])
  const usual = defaultValues[entity.name] ?? {}
  const fields = [...names].flatMap((name): KindField[] => {
    const schema = schemaProperties(create)[name] ?? patch[name] ?? detail[name]
    // An ID that the client chooses can be set, so it does not count as a base field.
    const isBase = baseFields.has(name) && name !== entity.idFrom
    if (schema === undefined || isBase || isSaidBefore(entity, name)) return []
    const field = entity.fields[name] ?? null
    return [
      {
        name,
        alias: aliasOf(entity, name),
        settable: settableIn(field, name in schemaProperties(create), name in patch),
        isRequired: requiredOf(create).includes(name) && !Object.hasOwn(usual, name),
        isRepeated: entity.body[name]?.requiredIn.includes('patch') === true,
        schema,
        reference: referenceOf(entity, name),
        isSecret: SECRET.test(name) && !(name in detail),
        isShown: name in detail,
        isReplacedWhole: field?.mergedOnto === null || field === null,
        filledFrom: field?.mergedOnto ?? null,
        field,
      },
    ]
  })
  const isWritten = ({ settable }: KindField): boolean => settable !== 'never'
  return [...fields.filter(isWritten), ...fields.filter((one) => !isWritten(one))]
}

/**
 * True for a field that repeats another field: the name and links of a record that another field
 * references, or an ID that the body contains under another name.
 */
function isSaidBefore(entity: Entity, name: string): boolean {
  if (Object.hasOwn(entity.body, name)) return false
  const field = entity.fields[name]
  const { computed = null } = field ?? {}
  if (computed?.from === 'rolesDisplay') return true
  if (computed?.from === 'entityRef') return entity.fields[computed.by]?.shown !== 'never'
  return (field?.reference ?? null) !== null && Object.hasOwn(entity.body, name.replace(/Id$/, ''))
}

/** The fields of a kind without a descriptor, from its response schema; none of them can be set. */
export function readOnlyFields(schema: JsonObject): readonly KindField[] {
  return Object.entries(schemaProperties(schema))
    .filter(([name]) => !baseFields.has(name))
    .map(([name, member]) => readOnly(name, member))
}

/**
 * Columns in addition to the fields of a kind. Records of all kinds have them, except that links
 * have only an ID.
 */
export const baseColumns: readonly KindField[] = ['id', 'createdAt', 'updatedAt'].map((name) =>
  readOnly(name, { type: 'string' }),
)

function readOnly(name: string, schema: JsonObject): KindField {
  return {
    name,
    alias: null,
    settable: 'never',
    isRequired: false,
    isRepeated: false,
    schema,
    reference: null,
    isSecret: false,
    isShown: true,
    isReplacedWhole: true,
    filledFrom: null,
    field: null,
  }
}

/**
 * References inside an object, with the path that error messages contain. Includes references in
 * hidden fields.
 */
export function nestedReferences(entity: Entity): readonly NestedReference[] {
  const hidden = Object.values(entity.fields).flatMap((field): NestedReference[] => {
    const { faultField, reference } = field
    if (reference === null || faultField?.includes('.') !== true) return []
    const path = faultField.split('.')
    const types = schemaTypes(schemaAt(entity, path))
    return [{ to: reference.to, shape: types.includes('array') ? 'many' : 'one', path }]
  })
  if (entity.name !== 'identity') return hidden
  return [...hidden, { to: 'ca', shape: 'one', path: ['enrollment', 'ottca'] }]
}

function schemaAt(entity: Entity, [first = '', ...rest]: readonly string[]): JsonObject {
  let schema = entity.fields[first]?.schema ?? {}
  for (const name of rest) schema = schemaProperties(schema)[name] ?? {}
  return schema
}

export function schemaProperties(schema: JsonObject): Properties {
  return (schema['properties'] ?? {}) as Properties
}

function requiredOf(schema: JsonObject): readonly string[] {
  return (schema['required'] ?? []) as readonly string[]
}

/** The types that a schema allows, including alternatives; none if everything is allowed. */
export function schemaTypes(schema: JsonObject): readonly string[] {
  const { type, anyOf } = schema
  if (typeof type === 'string') return [type]
  if (Array.isArray(type)) return type as readonly string[]
  if (!Array.isArray(anyOf)) return []
  return (anyOf as readonly JsonObject[]).flatMap(schemaTypes)
}

function settableIn(
  field: Field | null,
  isInCreate: boolean,
  isInPatch: boolean,
): KindField['settable'] {
  if (isInPatch && field?.settable !== 'create') return 'always'
  return isInCreate ? 'create' : 'never'
}

function referenceOf(entity: Entity, name: string): ReferenceShape | null {
  const field = entity.fields[name]
  if (field === undefined) return null
  if (field.reference !== null) return { to: field.reference.to, shape: shapeOf(field) }
  const { computed } = field
  const isNamedInBodies = Object.hasOwn(entity.body, name)
  if (computed?.from !== 'entityRef' || !isNamedInBodies) return null
  // If the body's schema is an enum, the field is not a reference: its value is one of the words,
  // not an ID.
  return 'enum' in (entity.body[name]?.schema ?? {}) ? null : { to: computed.to, shape: 'one' }
}

function shapeOf({ kind }: Field): ReferenceShape['shape'] {
  switch (kind) {
    case 'roleList':
      return 'roles'
    case 'references':
      return 'many'
    case 'map':
      return 'keys'
    default:
      return 'one'
  }
}

function aliasOf(entity: Entity, name: string): string | null {
  if (!name.endsWith('Id') || referenceOf(entity, name)?.shape !== 'one') return null
  const alias = name.slice(0, -2)
  return Object.hasOwn(entity.body, alias) ? null : alias
}
