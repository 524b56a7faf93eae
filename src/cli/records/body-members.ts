import type { YamlTree } from '../../config/engine/yaml-tree.ts'
import { mergeMembers } from '../../entities/nested-schemas.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { isJsonObject } from '../../lib/text/json-value.ts'
import { defaultValues } from './fields.ts'
import type { RecordKind } from './kinds.ts'
import { memberSchema } from './values.ts'

/** The first member of the tree that the schema does not define; null when there is none. */
export function findUnknownMember(
  schema: JsonObject,
  tree: YamlTree,
  path: string,
): { readonly line: number; readonly problem: string } | null {
  if (tree.kind === 'scalar') return null
  if (tree.kind === 'list') {
    const items = (schema['items'] ?? {}) as JsonObject
    for (const item of tree.items) {
      const fault = findUnknownMember(items, item, `${path}[]`)
      if (fault !== null) return fault
    }
    return null
  }
  for (const { key, line, value } of tree.entries) {
    const inner = memberSchema(schema, key)
    if (inner === null) return { line, problem: `${path} has no member ${JSON.stringify(key)}` }
    const fault = findUnknownMember(inner, value, `${path}.${key}`)
    if (fault !== null) return fault
  }
  return null
}

/**
 * Adds default values to the body. Also completes objects of which the body contains only some
 * members.
 */
export function addDefaultValues(kind: RecordKind, body: JsonObject): JsonObject {
  const result: Record<string, Json> = { ...defaultValues[kind.id], ...body }
  for (const { name, filledFrom } of kind.fields) {
    const value = result[name]
    if (filledFrom !== null && isJsonObject(value)) result[name] = mergeMembers(filledFrom, value)
  }
  return result
}

/** @returns the required fields that the body lacks. */
export function missingFields(kind: RecordKind, body: JsonObject): readonly string[] {
  return kind.fields
    .filter(({ name, isRequired }) => isRequired && (body[name] ?? null) === null)
    .map(({ name, alias }) => alias ?? name)
}

export function treeToJson(tree: YamlTree): Json {
  switch (tree.kind) {
    case 'scalar':
      return tree.value
    case 'list':
      return tree.items.map(treeToJson)
    case 'map':
      return Object.fromEntries(tree.entries.map(({ key, value }) => [key, treeToJson(value)]))
  }
}
