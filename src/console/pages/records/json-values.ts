/** Values of a form, as JSON that can be sent. */
export type Draft = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is Draft {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Deep equality of JSON: the order of members does not matter, and undefined equals null. */
export function isDeepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((one, at) => isDeepEqual(one, b[at]))
  }
  if (!isObject(a) || !isObject(b)) return isNothing(a) && isNothing(b)
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].every((name) => isDeepEqual(a[name], b[name]))
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null
}

/** Items of a list that are strings. */
export function stringItems(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

/** The object with a new value for one member; undefined removes the member. */
export function withMember(draft: Draft, name: string, value: unknown): Draft {
  if (value !== undefined) return { ...draft, [name]: value }
  const { [name]: _, ...rest } = draft
  return rest
}
