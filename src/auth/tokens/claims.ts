import { isObject } from '../../entities/check-fields.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'

/** Maximum path segments of one selector. */
const STEPS_MAX = 16
const INDEX_CHARACTERS_MAX = 4

/**
 * Resolves a selector: a JSON pointer (RFC 6901), whose first slash may be omitted. Undefined if
 * the claims have no such member; inherited members do not count.
 */
export function selectClaim(claims: JsonObject, selector: string): Json | undefined {
  const steps = stepsOf(selector)
  if (steps === null) return undefined
  let value: Json | undefined = claims
  for (const step of steps) {
    if (Array.isArray(value)) value = itemOf(value as readonly Json[], step)
    else if (isObject(value) && Object.hasOwn(value, step)) value = value[step]
    else return undefined
  }
  return value
}

/**
 * The selected claim, if it is a non-empty string; otherwise null. A number or a list never counts
 * as a name.
 */
export function selectTextClaim(claims: JsonObject, selector: string): string | null {
  const value = selectClaim(claims, selector)
  // @guard forged-tokens--text
  return typeof value === 'string' && value !== '' ? value : null
}

function stepsOf(selector: string): readonly string[] | null {
  const pointer = selector.startsWith('/') ? selector.slice(1) : selector
  if (pointer === '') return null
  const steps = pointer.split('/', STEPS_MAX + 1)
  // @guard costly-texts--claims
  if (steps.length > STEPS_MAX) return null
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function itemOf(list: readonly Json[], step: string): Json | undefined {
  const isIndex = step.length <= INDEX_CHARACTERS_MAX && /^(0|[1-9][0-9]*)$/.test(step)
  return isIndex ? list[Number(step)] : undefined
}
