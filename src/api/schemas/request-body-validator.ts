import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { fieldProblem, type Problem } from '../../lib/problems.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'
import { parseUuid } from '../../lib/text/uuid.ts'
import { schemaFieldNames } from './field-names.ts'
import type { JsonSchema } from '../http/operation.ts'

/**
 * Validates bodies. Compiles the schema of an operation when the first body arrives, because
 * compiling all schemas would take most of the startup time.
 */
export class RequestBodyValidator {
  /**
   * @returns a check that throws COULD_NOT_VALIDATE with the first fault, and renames fields to
   * their exact names.
   */
  checkOf(schema: JsonSchema): (value: unknown) => void {
    let compiled: Compiled | null = null
    return (value) => {
      compiled ??= compile(schema)
      const { validate, nameFields } = compiled
      nameFields?.(value)
      if (validate(value)) return
      const [error] = validate.errors ?? []
      throw error === undefined ? fieldProblem('body', 'body is invalid') : problemOf(error, value)
    }
  }
}

interface Compiled {
  readonly validate: ValidateFunction
  readonly nameFields: ReturnType<typeof schemaFieldNames>
}

/**
 * Compiled schemas by their text, shared by all validators of the process, because tests create
 * hundreds of validators. Operations and kinds define a fixed number of schemas.
 */
const compiledByText = new Map<string, Compiled>()
// Converts no types and adds no defaults, so that operations receive the body unchanged. Collects
// only the first error, because there could be very many.
const ajv = new Ajv({ allErrors: false, strict: false, coerceTypes: false, useDefaults: false })
/**
 * Formats in request bodies. For times and UUIDs, the check calls the function that later parses
 * the text, so a text that passes the check can always be parsed.
 */
export const bodyFormats: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': (text) => dateTimeMs(text) !== null,
  uuid: (text) => parseUuid(text) !== null,
  byte: isBase64,
}
for (const [name, validate] of Object.entries(bodyFormats)) ajv.addFormat(name, { validate })

/** Whether the whole text is base64. Node.js would silently skip other characters. */
function isBase64(text: string): boolean {
  return (
    Buffer.from(text, 'base64').toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  )
}

function compile(schema: JsonSchema): Compiled {
  const text = JSON.stringify(schema)
  let compiled = compiledByText.get(text)
  if (compiled === undefined) {
    compiled = { validate: ajv.compile(schema), nameFields: schemaFieldNames(schema) }
    compiledByText.set(text, compiled)
  }
  return compiled
}

function problemOf(error: ErrorObject, body: unknown): Problem {
  const steps = error.instancePath.split('/').slice(1).map(unescapePointer)
  const params = error.params as Readonly<Record<string, unknown>>
  const missing = params['missingProperty']
  if (error.keyword === 'required' && typeof missing === 'string') {
    const field = [...steps, missing].join('.')
    return fieldProblem(field, `${field} is required`)
  }
  const field = steps.length === 0 ? 'body' : steps.join('.')
  const reason = `${field} in body ${reasonOf(error, params)}`
  // Does not repeat the value if an object or a list was expected: the value may be one of its
  // members, and a member may be a secret.
  // @guard secret-comes-back-in-a-refusal
  if (error.keyword === 'type' && expectsMembers(params['type'])) return fieldProblem(field, reason)
  return fieldProblem(field, reason, scalar(valueAt(body, steps)))
}

const formatTexts: Readonly<Record<string, string>> = {
  'date-time': 'a time such as 2030-01-02T03:04:05Z (RFC 3339)',
  uuid: 'a UUID',
  byte: 'base64',
}

function expectsMembers(type: unknown): boolean {
  const types: readonly unknown[] = Array.isArray(type) ? type : [type]
  return types.includes('object') || types.includes('array')
}

function reasonOf(error: ErrorObject, params: Readonly<Record<string, unknown>>): string {
  const limit = String(params['limit'])
  switch (error.keyword) {
    case 'type':
      return `must be of type ${String(params['type'])}`
    case 'minLength':
      return `should be at least ${limit} chars long`
    case 'maxLength':
      return `should be at most ${limit} chars long`
    case 'minItems':
      return `should have at least ${limit} items`
    case 'maxItems':
      return `should have at most ${limit} items`
    case 'minimum':
      return `should be greater than or equal to ${limit}`
    case 'maximum':
      return `should be less than or equal to ${limit}`
    case 'enum': {
      const allowed = params['allowedValues']
      return `should be one of [${Array.isArray(allowed) ? allowed.join(' ') : ''}]`
    }
    case 'format':
      return `must be ${formatTexts[String(params['format'])] ?? 'valid'}`
    default:
      return error.message ?? 'is invalid'
  }
}

function unescapePointer(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}

function valueAt(body: unknown, steps: readonly string[]): unknown {
  let value = body
  for (const step of steps) {
    if (value === null || typeof value !== 'object') return undefined
    value = Object.hasOwn(value, step) ? (value as Record<string, unknown>)[step] : undefined
  }
  return value
}

/** Omits objects and lists, because error responses do not contain whole documents. */
function scalar(value: unknown): unknown {
  return value === null || typeof value === 'object' ? undefined : value
}

/**
 * Names of the members of a body that are not in its schema, at most `IGNORED_FIELDS_MAX`. The
 * members are ignored, and the response lists these names. Members of members are not checked.
 */
export function findIgnoredFields(schema: JsonSchema, body: unknown): string[] {
  if (body === null || typeof body !== 'object') return []
  const known = schema['properties'] as Readonly<Record<string, unknown>> | undefined
  return Object.keys(body)
    .filter((name) => known === undefined || !Object.hasOwn(known, name))
    .slice(0, IGNORED_FIELDS_MAX)
}

/** Maximum ignored fields that a response lists. */
export const IGNORED_FIELDS_MAX = 100
