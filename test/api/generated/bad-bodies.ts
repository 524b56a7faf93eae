import type { Json, JsonObject } from '../../../src/lib/text/canonical-json.ts'
import type { Item } from '../../support/served-answers.ts'
import {
  isAllowed,
  numberOf,
  present,
  propertiesOf,
  requiredOf,
  sample,
  typesOf,
} from './schemas.ts'

/** A body that differs from a valid one in one place. */
export interface BodyCase {
  readonly why: string
  readonly body: Json
  /** Field of the body that the response names. */
  readonly field: string
  /**
   * `beyond`: the schema forbids the value. `edge`: the schema just permits it, so no refusal
   * because of its size is expected.
   */
  readonly is: 'beyond' | 'edge'
}

type Path = readonly string[]
type Make = (value: Json | undefined) => Json

const VALUES: readonly Json[] = ['text', 5, 1.5, true, {}, [], null]

/**
 * Every way in which a body can violate its schema, each alone, and the extreme values that do not
 * violate it.
 */
export function* bodyCases(schema: Item, valid: JsonObject): Generator<BodyCase> {
  for (const value of VALUES) {
    if (value !== null && !Array.isArray(value) && typeof value === 'object') continue
    yield {
      why: `a body that is ${JSON.stringify(value)}`,
      body: value,
      field: 'body',
      is: 'beyond',
    }
  }
  yield* casesOfObject(schema, [], valid, (value) => value ?? null)
}

function* casesOfObject(
  schema: Item,
  path: Path,
  valid: JsonObject,
  make: Make,
): Generator<BodyCase> {
  const required = new Set(requiredOf(schema))
  for (const [name, member] of Object.entries(propertiesOf(schema))) {
    const at = [...path, name]
    const makeMember: Make = (value) => {
      const { [name]: _, ...rest } = valid
      return make(value === undefined ? rest : { ...rest, [name]: value })
    }
    if (required.has(name)) {
      yield { why: 'is missing', body: makeMember(undefined), field: at.join('.'), is: 'beyond' }
    }
    yield* casesOfValue(member, at, valid[name], makeMember)
  }
}

function* casesOfValue(
  schema: Item,
  path: Path,
  valid: Json | undefined,
  make: Make,
): Generator<BodyCase> {
  const field = path.join('.')
  const beyond = (why: string, value: Json): BodyCase => ({
    why,
    body: make(value),
    field,
    is: 'beyond',
  })
  const edge = (why: string, value: Json): BodyCase => ({
    why,
    body: make(value),
    field,
    is: 'edge',
  })
  for (const value of VALUES) {
    if (!isAllowed(schema, value)) yield beyond(`is ${JSON.stringify(value)}`, value)
  }
  const shape = present(schema)
  const types = typesOf(shape)
  if (Array.isArray(shape['enum'])) yield beyond('is none of its values', 'none of these')
  else if (shape['format'] === 'date-time') yield* timeCases(beyond, edge)
  else if (shape['format'] === 'uuid') yield* uuidCases(beyond)
  else if (types.size === 1 && types.has('string')) yield* textCases(shape, beyond, edge)
  if (types.has('integer') && types.size === 1) yield* numberCases(shape, beyond, edge)
  if (types.has('array') && types.size === 1) yield* arrayCases(shape, path, make, beyond, edge)
  if (types.has('object') && types.size === 1) {
    yield* mapCases(shape, beyond, edge)
    const inner = isObject(valid) ? valid : (sample(shape, true) as JsonObject)
    yield* casesOfObject(shape, path, inner, make)
  }
}

type Say = (why: string, value: Json) => BodyCase

function* timeCases(beyond: Say, edge: Say): Generator<BodyCase> {
  yield beyond('is no time', 'tomorrow')
  yield beyond('is a leap second', '2030-12-31T23:59:60Z')
  yield beyond('has an offset without minutes', '2030-12-31T23:59:59+01')
  yield beyond('has no offset', '2030-12-31T23:59:59')
  yield beyond('has a blank instead of its T', '2030-12-31 23:59:59Z')
  yield beyond('has a day that its month lacks', '2031-02-29T00:00:00Z')
  yield beyond('has a year of five digits', '9999-12-31T23:59:59-00:01')
  yield edge('has a fraction of nine digits', '2098-12-31T23:59:59.123456789Z')
  yield edge('has small letters', '2098-12-31t23:59:59z')
}

function* uuidCases(beyond: Say): Generator<BodyCase> {
  yield beyond('is no UUID', 'x')
  yield beyond('is a URN', 'urn:uuid:018f0000-0000-7000-8000-000000000000')
}

function* textCases(schema: Item, beyond: Say, edge: Say): Generator<BodyCase> {
  const least = numberOf(schema, 'minLength')
  const most = numberOf(schema, 'maxLength')
  if (least !== null && least > 0) {
    yield beyond('is too short', 'x'.repeat(least - 1))
    yield edge('is as short as may be', 'x'.repeat(least))
  }
  if (most !== null) {
    yield beyond('is too long', 'x'.repeat(most + 1))
    // This character has two UTF-16 units; limits count characters.
    yield edge('is as long as may be', '\u{1f6a2}'.repeat(most))
  }
}

function* numberCases(schema: Item, beyond: Say, edge: Say): Generator<BodyCase> {
  const least = numberOf(schema, 'minimum')
  const most = numberOf(schema, 'maximum')
  if (least !== null) {
    yield beyond('is too little', least - 1)
    yield edge('is as little as may be', least)
  }
  if (most !== null) {
    if (most < Number.MAX_SAFE_INTEGER) yield beyond('is too much', most + 1)
    yield edge('is as much as may be', most)
  }
}

function* arrayCases(
  schema: Item,
  path: Path,
  make: Make,
  beyond: Say,
  edge: Say,
): Generator<BodyCase> {
  const items = (schema['items'] ?? {}) as Item
  const least = numberOf(schema, 'minItems')
  const most = numberOf(schema, 'maxItems')
  const some = (count: number): Json[] =>
    Array.from({ length: count }, (_, at) =>
      typesOf(items).has('string') && items['enum'] === undefined ? `x${at}` : sample(items, false),
    )
  if (least !== null && least > 0) yield beyond('has too few', some(least - 1))
  if (most !== null) {
    yield beyond('has too many', some(most + 1))
    yield edge('has as many as may be', some(most))
  }
  yield* casesOfValue(items, [...path, '0'], undefined, (value) => make([value ?? null]))
}

function* mapCases(schema: Item, beyond: Say, edge: Say): Generator<BodyCase> {
  const most = numberOf(schema, 'maxProperties')
  if (most === null) return
  const values = schema['additionalProperties']
  const value = typeof values === 'object' ? sample(values as Item, false) : 'x'
  const some = (count: number): JsonObject =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`key ${at}`, value]))
  yield beyond('has too many members', some(most + 1))
  yield edge('has as many members as may be', some(most))
}

function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
