const NUMBER = '(?:0|[1-9][0-9]{0,14})'
// @guard costly-texts--digits
const IDENTIFIERS = '(?=[0-9A-Za-z.-]{1,64}(?:\\+|$))[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*'
const SUFFIX = `(?:-${IDENTIFIERS})?(?:\\+${IDENTIFIERS})?`
const FULL = `${NUMBER}\\.${NUMBER}\\.${NUMBER}${SUFFIX}`
/** Versions with wildcards: `1.x`, `1.x.x`, `1.2.x`. */
const WILD = `${NUMBER}\\.(?:x(?:\\.x)?|${NUMBER}\\.x)`
/** An optional operator, and a version or wildcard. */
export const VERSION_COMPARATOR = new RegExp(`^(>=|<=|==|!=|>|<|=|!)?(${FULL}|${WILD})$`)

const WHOLE = new RegExp(`^${FULL}$`)

/**
 * Splits a range at `||` into groups, and each group at blanks into comparators. A blank between an
 * operator and its version does not split.
 */
export function versionRangeGroups(range: string): string[][] {
  return range.split('||').map((group) =>
    group
      .replace(/([<>=!])\s+/g, '$1')
      .split(/\s+/)
      .filter((comparator) => comparator !== ''),
  )
}

/**
 * Whether a string is a version range as posture checks use it: groups separated by `||`, of
 * comparators separated by blanks. A version is in the range if all comparators of at least one
 * group hold. Example: `>=10.0.0 <11.0.0 || 12.x`.
 */
export function isVersionRange(text: string): boolean {
  return versionRangeGroups(text).every(
    (group) => group.length > 0 && group.every((comparator) => VERSION_COMPARATOR.test(comparator)),
  )
}

/**
 * Whether a string is one complete version, `1.2.3` or `1.2.3-rc.1+build` (Semantic Versioning
 * 2.0.0).
 */
export function isVersion(text: string): boolean {
  return WHOLE.test(text)
}
