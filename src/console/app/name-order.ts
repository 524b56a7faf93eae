const names = new Intl.Collator('en', { numeric: true })

/** The items in the order of their names: `host 2` before `host 10`. */
export function sortByName<T>(items: readonly T[], nameOf: (item: T) => string): readonly T[] {
  return [...items].sort((a, b) => names.compare(nameOf(a), nameOf(b)))
}
