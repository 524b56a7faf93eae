import type { Json, JsonObject } from '../../../src/lib/text/canonical-json.ts'
import type { Item } from '../../support/served-answers.ts'

export type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array' | 'null'

/** The types that a schema permits; all types if it restricts none. */
export function typesOf(schema: Item): ReadonlySet<JsonType> {
  const type = schema['type']
  if (typeof type === 'string') return new Set([type as JsonType])
  if (Array.isArray(type)) return new Set(type as JsonType[])
  const branches = branchesOf(schema)
  if (branches.length > 0) return new Set(branches.flatMap((branch) => [...typesOf(branch)]))
  return new Set(['string', 'integer', 'number', 'boolean', 'object', 'array', 'null'])
}

function branchesOf(schema: Item): readonly Item[] {
  return (schema['anyOf'] ?? schema['oneOf'] ?? []) as readonly Item[]
}

/** The alternative of the schema for a value that is not null. */
export function present(schema: Item): Item {
  const branches = branchesOf(schema)
  const branch = branches.find((one) => !(typesOf(one).size === 1 && typesOf(one).has('null')))
  return branch === undefined ? schema : present(branch)
}

export function isAllowed(schema: Item, value: Json): boolean {
  const types = typesOf(schema)
  if (value === null) return types.has('null')
  if (Array.isArray(value)) return types.has('array')
  if (typeof value === 'number') {
    return types.has('number') || (Number.isInteger(value) && types.has('integer'))
  }
  return types.has(typeof value as JsonType)
}

export function propertiesOf(schema: Item): Readonly<Record<string, Item>> {
  return (schema['properties'] ?? {}) as Readonly<Record<string, Item>>
}

export function requiredOf(schema: Item): readonly string[] {
  return (schema['required'] ?? []) as readonly string[]
}

export function numberOf(schema: Item, name: string): number | null {
  const value = schema[name]
  return typeof value === 'number' ? value : null
}

let serial = 0

/** A text that is different each time, also in other processes. */
export function uniqueText(prefix: string): string {
  serial += 1
  return `${prefix}-${process.pid.toString(36)}-${serial}`
}

/** A value that the schema accepts: with the required members only, or with all members. */
export function sample(schema: Item, isFull: boolean, name = 'probe'): Json {
  const shape = present(schema)
  const values = shape['enum']
  if (Array.isArray(values)) return (values as Json[]).find((value) => value !== '') ?? ''
  const types = typesOf(shape)
  if (types.has('string')) return sampleText(shape, name)
  if (types.has('boolean')) return false
  if (types.has('integer') || types.has('number')) return numberOf(shape, 'minimum') ?? 0
  if (types.has('array')) return sampleArray(shape, name)
  return sampleObject(shape, isFull)
}

function sampleText(schema: Item, name: string): string {
  if (schema['format'] === 'date-time') return '2099-01-02T03:04:05.000Z'
  if (schema['format'] === 'uuid') return '018f0000-0000-7000-8000-000000000000'
  const text = uniqueText(name).padEnd(numberOf(schema, 'minLength') ?? 0, 'x')
  return text.slice(0, numberOf(schema, 'maxLength') ?? Infinity)
}

function sampleArray(schema: Item, name: string): Json {
  const items = schema['items'] as Item | undefined
  const length = numberOf(schema, 'minItems') ?? 0
  return Array.from({ length }, () => sample(items ?? {}, false, name))
}

export function sampleObject(schema: Item, isFull: boolean): JsonObject {
  const required = new Set(requiredOf(schema))
  const members = Object.entries(propertiesOf(schema)).filter(
    ([name]) => isFull || required.has(name),
  )
  return Object.fromEntries(members.map(([name, member]) => [name, sample(member, isFull, name)]))
}
