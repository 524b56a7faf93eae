import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { FieldFault } from '../../lib/problems.ts'
import { errorMessage } from '../../lib/error-code.ts'

// JSON Schemas from users (draft-07). Do not run this code in a thread that serves other work: a
// schema can contain a regular expression whose evaluation never ends.

const compiledMax = 16
const messageCharactersMax = 512
const valueCharactersMax = 128

/**
 * Matches the URIs of draft-04 to draft-07, and the URI without a version. OpenZiti clients put
 * these URIs into their schemas.
 */
const DIALECT = /^https?:\/\/json-schema\.org\/(draft-0[4-7]\/)?schema#?$/

/**
 * Fault of a schema, reported for the field `schema`; null when the schema can validate configs.
 */
export function schemaFault(schema: JsonObject): FieldFault | null {
  if (Object.keys(schema).length === 0) return null
  if (schema['type'] !== 'object') return faultOf('schema', 'its root must be of type "object"')
  const dialect = schema['$schema']
  if (dialect !== undefined && (typeof dialect !== 'string' || !DIALECT.test(dialect))) {
    return faultOf('schema', '$schema must name draft-07 of JSON Schema')
  }
  // Refuses `$async`: a compiled asynchronous schema would return a promise, which always counts as
  // valid.
  if (Object.hasOwn(schema, '$async')) return faultOf('schema', '$async is not part of draft-07')
  try {
    compile(schema)
    return null
  } catch (error) {
    return faultOf('schema', errorMessage(error))
  }
}

/**
 * The fault of the schema if it is unusable, otherwise the first fault of the data; null when the
 * data is valid.
 */
export function dataFault(schema: JsonObject, data: Json): FieldFault | null {
  const unusable = schemaFault(schema)
  if (unusable !== null) return unusable
  if (Object.keys(schema).length === 0) return null
  try {
    const validate = compile(schema)
    if (validate(data)) return null
    const [error] = validate.errors ?? []
    return error === undefined ? faultOf('data', 'it violates its schema') : faultAt(error, data)
  } catch (error) {
    // This error means that the schema contains an endless reference to itself.
    return faultOf('data', errorMessage(error))
  }
}

const compiled = new Map<string, ValidateFunction>()

/** @throws when the schema is not valid. */
function compile(schema: JsonObject): ValidateFunction {
  const key = JSON.stringify(schema)
  const known = compiled.get(key)
  if (known !== undefined) return known
  // Uses a separate Ajv instance for each schema, because the `$id` of one schema must not conflict
  // with the `$id` of another.
  const ajv = new Ajv({
    strict: false,
    allErrors: false,
    coerceTypes: false,
    useDefaults: false,
    unicodeRegExp: false,
    logger: false,
    // With `verbose`, an error contains the schema, which is needed to describe the values that
    // `not` excludes.
    verbose: true,
  })
  addFormats.default(ajv)
  const { $schema, ...rest } = schema
  const made = ajv.compile(rest)
  if (compiled.size >= compiledMax) compiled.clear()
  compiled.set(key, made)
  return made
}

/**
 * Fault with the path in OpenZiti's format: `(root)`, or names with dots. A missing or additional
 * member is reported at its parent.
 */
function faultAt(error: ErrorObject, data: Json): FieldFault {
  const steps = error.instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  const extra = (error.params as Readonly<Record<string, unknown>>)['additionalProperty']
  const what =
    typeof extra === 'string'
      ? `${error.message ?? ''}: ${extra}`
      : error.keyword === 'not'
        ? excludedBy(error.schema as Json)
        : error.message
  return faultOf(
    steps.length === 0 ? '(root)' : steps.join('.'),
    what ?? 'invalid',
    valueAt(data, steps),
  )
}

/**
 * Description of the values that `not` excludes, because the library's message does not name them.
 */
function excludedBy(schema: Json): string {
  const empty = ['{"pattern":"^$"}', '{"const":""}', '{"maxLength":0}']
  const text = JSON.stringify(schema)
  return empty.includes(text) ? 'must not be empty' : `must not match ${text}`
}

function faultOf(field: string, what: string, value?: Json): FieldFault {
  const name = field.slice(0, messageCharactersMax)
  const reason = `${name} is invalid: ${what}`.slice(0, messageCharactersMax)
  return value === undefined ? { field: name, reason } : { field: name, reason, value }
}

/** The value at a path, shortened, if it is a scalar. Errors contain no whole documents. */
function valueAt(data: Json, steps: readonly string[]): Json | undefined {
  let value: Json | undefined = data
  for (const step of steps) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, step)) return undefined
    value = (value as JsonObject)[step]
  }
  if (value === null || typeof value === 'object') return undefined
  return typeof value === 'string' ? value.slice(0, valueCharactersMax) : value
}
