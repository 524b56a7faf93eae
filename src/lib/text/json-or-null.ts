/** The value of a JSON text; null for a text that is not JSON, and for `null`. */
export function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}
