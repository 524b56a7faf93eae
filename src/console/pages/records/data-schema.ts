import type { ServedSchema } from '../../client/api-document.ts'
import { isObject } from './json-values.ts'

const DEPTH_MAX = 16
/** Maximum schemas that one form is made from: references can repeat a schema without end. */
const SCHEMAS_MAX = 2000

/**
 * The schema of a config type, prepared for building form fields: references are resolved and the
 * parts of `allOf` are merged. A part that is nested too deep becomes an empty schema, which a form
 * shows as JSON.
 */
export function resolveDataSchema(root: ServedSchema): ServedSchema {
  let left = SCHEMAS_MAX
  const resolve = (schema: unknown, depth: number): ServedSchema => {
    left -= 1
    if (depth > DEPTH_MAX || left < 0 || !isObject(schema)) return {}
    const own = schema as ServedSchema
    const next = (one: unknown): ServedSchema => resolve(one, depth + 1)
    if (typeof own.$ref === 'string') {
      const target = schemaAt(root, own.$ref)
      const named = next(target)
      return named.title === undefined ? { ...named, title: lastStep(own.$ref) } : named
    }
    const { allOf, ...rest } = own
    const merged = Array.isArray(allOf)
      ? allOf.map(next).reduce(merge, withResolvedParts(rest, next))
      : withResolvedParts(rest, next)
    return merged
  }
  return resolve(root, 0)
}

function withResolvedParts(
  schema: ServedSchema,
  resolve: (one: unknown) => ServedSchema,
): ServedSchema {
  const { properties, items, oneOf, anyOf } = schema
  return {
    ...schema,
    ...(isObject(properties)
      ? {
          properties: Object.fromEntries(
            Object.entries(properties)
              .sort(([a], [b]) => placeOf(a) - placeOf(b))
              .map(([name, one]) => [name, resolve(one)]),
          ),
        }
      : {}),
    ...(isObject(items) ? { items: resolve(items) } : {}),
    ...(Array.isArray(oneOf) ? { oneOf: oneOf.map(resolve) } : {}),
    ...(Array.isArray(anyOf) ? { anyOf: anyOf.map(resolve) } : {}),
  }
}

/**
 * Members that a person expects first, in this order: controllers serve the members of a schema in
 * alphabetical order.
 */
const firstMembers: readonly string[] = [
  'type',
  'protocol',
  'protocols',
  'hostname',
  'address',
  'addresses',
  'port',
  'portRanges',
  'low',
  'high',
  'from',
  'to',
]

function placeOf(name: string): number {
  const at = firstMembers.indexOf(name)
  return at === -1 ? firstMembers.length : at
}

/** A condition stays in the list `allOf`, because a schema can have only one `if`. */
function merge(a: ServedSchema, b: ServedSchema): ServedSchema {
  if (b.if !== undefined) return { ...a, allOf: [...(a.allOf ?? []), b] }
  const allOf = [...(a.allOf ?? []), ...(b.allOf ?? [])]
  return {
    ...a,
    ...b,
    ...(allOf.length === 0 ? {} : { allOf }),
    ...(a.properties === undefined && b.properties === undefined
      ? {}
      : { properties: { ...a.properties, ...b.properties } }),
    ...(a.required === undefined && b.required === undefined
      ? {}
      : { required: [...(a.required ?? []), ...(b.required ?? [])] }),
  }
}

/** The part of a schema at a reference such as `#/definitions/port`. */
function schemaAt(root: ServedSchema, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined
  let found: unknown = root
  for (const step of reference.slice(1).split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!isObject(found) || !Object.hasOwn(found, name)) return undefined
    found = found[name]
  }
  return found
}

function lastStep(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}

/**
 * Whether a value matches a resolved schema. Checks only the keywords that distinguish the variants
 * of a schema; the controller validates the rest.
 */
export function matchesSchema(schema: ServedSchema, value: unknown): boolean {
  if ('const' in schema && schema.const !== value) return false
  if (schema.enum !== undefined && !schema.enum.includes(value)) return false
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])
  if (types.length > 0 && !types.some((type) => isOfType(type, value))) return false
  if (schema.format === 'ipv4' && String(value).includes(':')) return false
  if (schema.format === 'ipv6' && !String(value).includes(':')) return false
  if (Array.isArray(value)) {
    const { items } = schema
    return items === undefined || value.every((one) => matchesSchema(items, one))
  }
  if (!isObject(value)) return true
  const { properties = {}, required = [], additionalProperties } = schema
  if (required.some((name) => value[name] === undefined)) return false
  return Object.entries(value).every(([name, one]) => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    return property === undefined ? additionalProperties !== false : matchesSchema(property, one)
  })
}

function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'integer':
      return Number.isInteger(value)
    default:
      return typeof value === type
  }
}

/**
 * The fields that `if`, `then` and `else` of a schema require for a value; null if the schema has
 * none.
 */
export function conditionalRequirements(
  schema: ServedSchema,
): ((value: Readonly<Record<string, unknown>>) => readonly string[]) | null {
  const conditions = [schema, ...(schema.allOf ?? [])].filter((one) => one.if !== undefined)
  if (conditions.length === 0) return null
  return (value) =>
    conditions.flatMap((one) => {
      const branch = matchesSchema(one.if ?? {}, value) ? one.then : one.else
      return branch?.required ?? []
    })
}
