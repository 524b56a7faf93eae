import type { JsonObject } from '../../lib/text/canonical-json.ts'

/** An object that always has all of these fields. */
export const closed = (properties: JsonObject): JsonObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
})

export const arrayOf = (items: JsonObject): JsonObject => ({ type: 'array', items })
