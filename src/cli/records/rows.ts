import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { isJsonObject } from '../../lib/text/json-value.ts'
import {
  listShape,
  nullableShape,
  objectShape,
  optionalShape,
  type ShapeCheck,
  textShape,
} from '../client/response-shape.ts'

/** A record as the API returns it. */
export type ApiRecordRow = JsonObject & { readonly id: string }

/** `name` is optional, because some kinds have no names. */
export const rowShape = objectShape({
  id: textShape,
  name: optionalShape(nullableShape(textShape)),
}) as ShapeCheck<ApiRecordRow>
export const rowsShape = listShape(rowShape)
export const createdRecordShape = objectShape<{ readonly id: string }>({ id: textShape })

/**
 * The text as a string literal in a filter.
 * @throws {CommandFailure} exit 1 for text that a filter cannot express.
 */
export function toFilterLiteral(text: string): string {
  if (/[\x00-\x07\x0b\x0e-\x1f]/.test(text)) {
    throw new CommandFailure(
      EXIT_FAILED,
      'a name contains control characters; use the id of the record',
    )
  }
  return JSON.stringify(text).replaceAll('\\b', '\b')
}

export function readMemberAt(value: Json, path: readonly string[]): Json | undefined {
  let found: Json | undefined = value
  for (const name of path) {
    if (typeof found !== 'object' || found === null || Array.isArray(found)) return undefined
    found = Object.hasOwn(found, name) ? (found as JsonObject)[name] : undefined
  }
  return found
}

/** Sets the member at the path, and creates missing objects on the path. */
export function setMemberAt(object: JsonObject, path: readonly string[], value: Json): JsonObject {
  const [name = '', ...rest] = path
  if (rest.length === 0) return { ...object, [name]: value }
  const inner = readMemberAt(object, [name])
  return { ...object, [name]: setMemberAt(isJsonObject(inner) ? inner : {}, rest, value) }
}
