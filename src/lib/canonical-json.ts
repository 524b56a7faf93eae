export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

/**
 * JSON with object keys in code-unit order, so that equal values give equal bytes on every controller
 * (after RFC 8785; numbers as ECMAScript prints them). Members that are undefined are left out.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (value !== null && typeof value === 'object') {
    const record = value as Record<string, unknown>
    const parts: string[] = []
    for (const key of Object.keys(record).sort()) {
      const member = record[key]
      if (member !== undefined) parts.push(`${JSON.stringify(key)}:${canonicalJson(member)}`)
    }
    return `{${parts.join(',')}}`
  }
  return JSON.stringify(value)
}
