import compare from 'semver/functions/compare.js'

const NUMBER = '(?:0|[1-9][0-9]{0,14})'
// @guard costly-texts--digits
const IDENTIFIERS = '(?=[0-9A-Za-z.-]{1,64}(?:\\+|$))[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*'
const SUFFIX = `(?:-${IDENTIFIERS})?(?:\\+${IDENTIFIERS})?`
const FULL = `${NUMBER}\\.${NUMBER}\\.${NUMBER}${SUFFIX}`
/** Versions with wildcards: `1.x`, `1.x.x`, `1.2.x`. */
const WILD = `${NUMBER}\\.(?:x(?:\\.x)?|${NUMBER}\\.x)`
const COMPARATOR = new RegExp(`^(>=|<=|==|!=|>|<|=|!)?(${FULL}|${WILD})$`)
/**
 * Accepts versions such as `5.15.0-091`, which has a leading zero, because devices report such
 * versions.
 */
const LOOSE = true
const WHOLE = new RegExp(`^${FULL}$`)

/** Splits a range at blanks, except at a blank between an operator and its version. */
function groupsOf(range: string): string[][] {
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
  return groupsOf(text).every(
    (group) => group.length > 0 && group.every((comparator) => COMPARATOR.test(comparator)),
  )
}

/**
 * Whether a string is one complete version, `1.2.3` or `1.2.3-rc.1+build` (Semantic Versioning
 * 2.0.0).
 */
function isVersion(text: string): boolean {
  return WHOLE.test(text)
}

/** Whether a version is in a range; false for an incomplete version or an invalid range. */
export function isInVersionRange(version: string, range: string): boolean {
  return (
    isVersion(version) &&
    isVersionRange(range) &&
    groupsOf(range).some((group) => group.every((comparator) => holds(version, comparator)))
  )
}

function holds(version: string, comparator: string): boolean {
  const [, operator = '', bound = ''] = COMPARATOR.exec(comparator) ?? []
  const [first, beyond] = boundsOf(bound)
  const isBelow = compare(version, first, LOOSE) < 0
  // A wildcard version includes all versions from its first version up to, but not including, the
  // version `beyond`.
  const isAbove =
    beyond === null ? compare(version, first, LOOSE) > 0 : compare(version, beyond, LOOSE) >= 0
  switch (operator) {
    case '>':
      return isAbove
    case '>=':
      return !isBelow
    case '<':
      return isBelow
    case '<=':
      return !isAbove
    case '!':
    case '!=':
      return isBelow || isAbove
    default:
      return !isBelow && !isAbove
  }
}

/**
 * The first version that the bound includes, and the first version after it; null if the bound is a
 * single version.
 */
function boundsOf(bound: string): readonly [first: string, beyond: string | null] {
  if (!bound.includes('x') || isVersion(bound)) return [bound, null]
  const [major = '0', minor = 'x'] = bound.split('.')
  if (minor === 'x') return [`${major}.0.0`, `${Number(major) + 1}.0.0`]
  return [`${major}.${minor}.0`, `${major}.${Number(minor) + 1}.0`]
}
