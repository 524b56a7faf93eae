import { nearestWord } from '../../config/engine/nearest-word.ts'
import { usageFailure } from '../../controller/command-failure.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { parseTimeWord } from './time-words.ts'
import { schemaProperties, schemaTypes } from './fields.ts'
import { isJsonObject } from '../../lib/text/json-value.ts'

/**
 * Parses a word of the command line according to the schema of its field.
 * @param path name of the field; the message begins with it.
 * @throws {CommandFailure} exit 2.
 */
export function parseFieldValue(path: string, word: string, schema: JsonObject): Json {
  const types = schemaTypes(schema)
  if (types.length === 0) return freeValue(word)
  if (isTime(schema)) return word === 'null' ? null : parseTimeWord(path, word)
  if (types.includes('string')) return checkedChoice(path, word, schema)
  if (word === 'null' && types.includes('null')) return null
  if (types.includes('boolean')) return flagOf(path, word)
  if (types.includes('integer') || types.includes('number')) return numberOf(path, word)
  if (types.includes('array')) return listOf(path, word, schema)
  return objectOf(path, word)
}

function isTime(schema: JsonObject): boolean {
  const { format, anyOf } = schema
  if (Array.isArray(anyOf)) return (anyOf as readonly JsonObject[]).some(isTime)
  return format === 'date-time'
}

/** A value in a map that allows any values: parsed as JSON, or a string if the word is not JSON. */
function freeValue(word: string): Json {
  if (!/^(true|false|null|-?\d+(\.\d+)?|[[{"].*)$/s.test(word)) return word
  try {
    return JSON.parse(word) as Json
  } catch {
    return word
  }
}

function checkedChoice(path: string, word: string, schema: JsonObject): string {
  const choices = schemaChoices(schema)
  if (choices === null || choices.includes(word)) return word
  const near = nearestWord(word, choices)
  const hint = near === null ? '' : `; did you mean ${near}?`
  throw usageFailure(
    `${path}: expected ${choices.join(', ')}, found ${JSON.stringify(word)}${hint}`,
  )
}

/** The strings that a schema allows; null if it allows any string. */
export function schemaChoices(schema: JsonObject): readonly string[] | null {
  const { enum: values } = schema
  if (!Array.isArray(values)) return null
  return (values as readonly Json[]).filter((one): one is string => typeof one === 'string')
}

function flagOf(path: string, word: string): boolean {
  if (word === 'true') return true
  if (word === 'false') return false
  throw usageFailure(`${path}: expected true or false, found ${JSON.stringify(word)}`)
}

function numberOf(path: string, word: string): number {
  if (/^-?\d{1,16}(\.\d+)?$/.test(word)) return Number(word)
  throw usageFailure(`${path}: expected a number, found ${JSON.stringify(word)}`)
}

/** Parses a list: comma-separated values, or JSON. */
function listOf(path: string, word: string, schema: JsonObject): Json {
  if (word === '') return []
  if (word.startsWith('[')) {
    const list = parsed(path, word)
    if (Array.isArray(list)) return list
  }
  const items = (schema['items'] ?? {}) as JsonObject
  return word.split(',').map((one) => parseFieldValue(path, one.trim(), items))
}

function objectOf(path: string, word: string): Json {
  const value = parsed(path, word)
  if (isJsonObject(value)) return value
  throw usageFailure(
    `${path}: expected an object as JSON, such as '{"a": 1}', or ${path}.MEMBER=VALUE`,
  )
}

function parsed(path: string, word: string): Json {
  try {
    return JSON.parse(word) as Json
  } catch {
    throw usageFailure(`${path}: expected JSON, found ${JSON.stringify(word.slice(0, 40))}`)
  }
}

/**
 * The schema of one member of an object.
 * @returns null if the object has no such member.
 */
export function memberSchema(schema: JsonObject, name: string): JsonObject | null {
  const properties = schemaProperties(schema)
  const own = Object.hasOwn(properties, name) ? properties[name] : undefined
  if (own !== undefined) return own
  const values = schema['additionalProperties']
  if (isJsonObject(values)) return values
  const isOpen = values === true || (Object.keys(properties).length === 0 && values !== false)
  return isOpen ? {} : null
}
