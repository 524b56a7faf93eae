import { isDeepEqual } from './json-values.ts'

/**
 * For two lists of strings, returns only the removed and the added items; null instead of an empty
 * list. Returns other values unchanged, and '' for a missing one.
 */
export function changedItems(
  before: unknown,
  after: unknown,
): { readonly before: unknown; readonly after: unknown } {
  const [was, is] = [before ?? [], after ?? []]
  if (!isTextList(was) || !isTextList(is) || was.length + is.length === 0) {
    return { before: before ?? '', after: after ?? '' }
  }
  const removed = was.filter((one) => !is.includes(one))
  const added = is.filter((one) => !was.includes(one))
  // If only the order has changed, the whole lists are returned.
  if (removed.length + added.length === 0 && !isDeepEqual(was, is))
    return { before: was, after: is }
  return {
    before: removed.length === 0 ? null : removed,
    after: added.length === 0 ? null : added,
  }
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}
