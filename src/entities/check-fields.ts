import { canonicalJson, type Json, type JsonObject } from '../lib/text/canonical-json.ts'
import type { FieldFault } from '../lib/problems.ts'
import type { Entity } from './define-entity.ts'
import type { Field } from './fields.ts'

const utf8 = new TextEncoder()

function isScalar(value: Json): boolean {
  return value === null || typeof value !== 'object'
}

function isTexts(value: Json | undefined): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

/** Whether the value is a JSON object; false for null and arrays. */
export function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

function isOfKind(field: Field, value: Json): boolean {
  if (value === null) return field.zero === null
  switch (field.kind) {
    case 'text':
    case 'choice':
    case 'reference':
      return typeof value === 'string'
    case 'boolean':
      return typeof value === 'boolean'
    case 'integer':
    case 'timestamp':
      return Number.isSafeInteger(value)
    case 'roleList':
    case 'attributes':
    case 'texts':
    case 'references':
      return isTexts(value)
    case 'map':
    case 'object':
      return isObject(value)
    case 'objects':
      return Array.isArray(value) && (value as readonly Json[]).every(isObject)
    case 'computed':
      return false
  }
}

const roleReason =
  'role entries must be prefixed with # (to indicate role attributes) or @ (to indicate an id)'

function roleFault(name: string, roles: readonly string[]): FieldFault | null {
  for (const role of roles) {
    if (role.length < 2 || (!role.startsWith('#') && !role.startsWith('@'))) {
      return { field: name, reason: roleReason, value: role }
    }
  }
  if (roles.length > 1 && roles.includes('#all')) {
    const reason = 'if using #all, it should be the only role specified'
    return { field: name, reason, value: roles }
  }
  return null
}

function attributeFault(name: string, attributes: readonly string[]): FieldFault | null {
  for (const value of attributes) {
    if (value === '') return { field: name, reason: 'role attributes may not be empty', value }
    if (value.startsWith('#') || value.startsWith('@')) {
      const reason = `role attributes may not be prefixed with ${value.charAt(0)}`
      return { field: name, reason, value }
    }
  }
  return null
}

function mapFault(name: string, value: JsonObject): FieldFault | null {
  if (Object.values(value).every(isScalar)) return null
  return { field: name, reason: `${name} values must be a string, a number, a boolean or null` }
}

/** Size of a map in bytes of canonical JSON; 0 for an empty map. */
export function jsonMapBytes(value: Json | undefined): number {
  if (!isObject(value) || Object.keys(value).length === 0) return 0
  return utf8.encode(canonicalJson(value)).length
}

function bytesFault(name: string, value: JsonObject, bytesMax: number | null): FieldFault | null {
  // @guard filling-the-state--tags
  if (bytesMax === null || jsonMapBytes(value) <= bytesMax) return null
  return { field: name, reason: `${name} should take at most ${bytesMax} bytes as JSON` }
}

function textsFault(
  name: string,
  values: readonly string[],
  allowed: readonly string[],
): FieldFault | null {
  const wrong = values.find((value) => !allowed.includes(value))
  if (wrong === undefined) return null
  const reason = `${name} in body should be one of [${allowed.join(' ')}]`
  return { field: name, reason, value: wrong.slice(0, 128) }
}

/** The fault of a value that can be determined without reading other records. */
function valueFault(name: string, field: Field, value: Json): FieldFault | null {
  if (!isOfKind(field, value)) return { field: name, reason: `${name} is of the wrong type` }
  if (field.kind === 'roleList' && isTexts(value)) return roleFault(name, value)
  if (field.kind === 'attributes' && isTexts(value)) return attributeFault(name, value)
  if (field.values !== null && isTexts(value)) return textsFault(name, value, field.values)
  if (field.kind === 'map' && isObject(value)) {
    return mapFault(name, value) ?? bytesFault(name, value, field.bytesMax)
  }
  if (value === '' && field.isRequired) return { field: name, reason: `${name} is required`, value }
  return null
}

/**
 * The first fault in normalized fields, in order of the fields' names; null when there is none.
 * Finds only faults that can be determined without reading other records. The check runs before a
 * proposal and again when the log entry is applied, where a fault must become a refusal and never
 * an exception.
 */
export function checkFields(entity: Entity, fields: JsonObject): FieldFault | null {
  for (const name of entity.fieldNames) {
    const value = fields[name]
    const field = entity.fields[name]
    if (value === undefined || field === undefined) continue
    const fault = valueFault(name, field, value)
    if (fault !== null) return fault
  }
  return null
}
