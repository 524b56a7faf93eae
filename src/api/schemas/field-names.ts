import { assert } from '../../lib/assert.ts'
import { fieldProblem } from '../../lib/problems.ts'
import type { JsonSchema } from '../http/operation.ts'

/** Renames the members of a parsed body to the names in its schema, in place. */
type FieldNames = (value: unknown, path?: string) => void

/**
 * Creates a function that renames the members of a body. OpenZiti matches names case-insensitively,
 * and some of its clients send `Type` for `type`. A name with the exact case costs one map lookup;
 * only other names are converted to lower case. Keys of maps with arbitrary keys stay unchanged.
 * @returns null for a schema that defines no members at any depth.
 */
export function schemaFieldNames(schema: JsonSchema): FieldNames | null {
  const alternatives = [
    ofItems(schema),
    ofMembers(schema),
    ofValues(schema),
    ...choicesOf(schema).map(schemaFieldNames),
  ].filter((one) => one !== null)
  const [first] = alternatives
  if (first === undefined || alternatives.length === 1) return first ?? null
  return (value, path) => {
    for (const names of alternatives) names(value, path)
  }
}

function choicesOf({ anyOf }: JsonSchema): readonly JsonSchema[] {
  return Array.isArray(anyOf) ? (anyOf as readonly JsonSchema[]) : []
}

function ofItems({ items }: JsonSchema): FieldNames | null {
  const names = isSchema(items) ? schemaFieldNames(items) : null
  if (names === null) return null
  return (value, path) => {
    if (!Array.isArray(value)) return
    for (let at = 0; at < value.length; at += 1) names(value[at], below(path, String(at)))
  }
}

/**
 * Renames members inside the values of a map. The keys stay unchanged, because the user chooses
 * them.
 */
function ofValues({ properties, additionalProperties }: JsonSchema): FieldNames | null {
  if (isSchema(properties) || !isSchema(additionalProperties)) return null
  const names = schemaFieldNames(additionalProperties)
  if (names === null) return null
  return (value, path) => {
    if (!isRecord(value)) return
    for (const [key, member] of Object.entries(value)) names(member, below(path, key))
  }
}

function ofMembers({ properties }: JsonSchema): FieldNames | null {
  if (!isSchema(properties)) return null
  const inner = new Map<string, FieldNames | null>()
  const byFolded = new Map<string, string>()
  for (const [name, member] of Object.entries(properties)) {
    const folded = name.toLowerCase()
    assert(!byFolded.has(folded), `two fields of a schema differ by case alone: ${name}`)
    byFolded.set(folded, name)
    inner.set(name, isSchema(member) ? schemaFieldNames(member) : null)
  }
  if (inner.size === 0) return null
  return (value, path) => {
    if (!isRecord(value)) return
    for (const name of Object.keys(value)) {
      const known = inner.get(name)
      if (known !== undefined) {
        known?.(value[name], below(path, name))
        continue
      }
      const exact = byFolded.get(name.toLowerCase())
      if (exact === undefined) continue
      rename(value, name, exact, path)
      inner.get(exact)?.(value[exact], below(path, exact))
    }
  }
}

/**
 * Renames members to the spelling in the schema. If a body contains a member in two spellings, the
 * body is refused, because it is unclear which of them is meant.
 */
function rename(
  value: Record<string, unknown>,
  name: string,
  exact: string,
  path: string | undefined,
): void {
  if (Object.hasOwn(value, exact)) {
    const field = below(path, exact)
    throw fieldProblem(field, `${field} in body is given more than once, in other spellings`)
  }
  value[exact] = value[name]
  delete value[name]
}

function below(path: string | undefined, name: string): string {
  return path === undefined ? name : `${path}.${name}`
}

function isSchema(value: unknown): value is JsonSchema {
  return isRecord(value)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
