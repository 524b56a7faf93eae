export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

/**
 * JSON with object keys in code-unit order, so that equal values give equal bytes on every
 * controller (after RFC 8785; numbers as ECMAScript prints them). Members with the value undefined
 * are omitted.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (value !== null && typeof value === 'object') {
    const record = value as Record<string, unknown>
    const parts: string[] = []
    const keys = Object.keys(record)
    // Most objects are already in order, because their JSON was canonical when it was parsed.
    let at = 1
    while (at < keys.length && (keys[at - 1] ?? '') < (keys[at] ?? '')) at += 1
    if (at < keys.length) keys.sort()
    for (const key of keys) {
      const member = record[key]
      if (member !== undefined) parts.push(`${JSON.stringify(key)}:${canonicalJson(member)}`)
    }
    return `{${parts.join(',')}}`
  }
  return JSON.stringify(value)
}

/**
 * Whether two values are equal, ignoring the order of object members. Builds no JSON string, even
 * for large values.
 */
export function isSameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    const [own, other] = [a as readonly Json[], b as readonly Json[]]
    return own.every((value, at) => isSameJson(value, other[at]))
  }
  const [own, other] = [a as JsonObject, b as JsonObject]
  const names = Object.keys(own)
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSameJson(own[name], other[name]))
  )
}
