const NUMBER = '(?:0|[1-9][0-9]{0,14})'
const PRERELEASE = '(?:-[0-9A-Za-z.-]{1,64})?'
const SUFFIX = `${PRERELEASE}(?:\\+[0-9A-Za-z.-]{1,64})?`
const FULL = `${NUMBER}\\.${NUMBER}\\.${NUMBER}${SUFFIX}`
/** `1.x`, `1.x.x`, `1.2.x`. */
const WILD = `${NUMBER}\\.(?:x(?:\\.x)?|${NUMBER}\\.x)`
const COMPARATOR = new RegExp(`^(>=|<=|==|!=|>|<|=|!)?(${FULL}|${WILD})$`)
const VERSION = new RegExp(`^(${NUMBER})\\.(${NUMBER})\\.(${NUMBER})(${PRERELEASE})(?:\\+.*)?$`)
const WHOLE = new RegExp(`^${FULL}$`)

/**
 * What comparators are separated by: blanks, of which none separates an operator from its version.
 */
function groupsOf(range: string): string[][] {
  return range.split('||').map((group) =>
    group
      .replace(/([<>=!])\s+/g, '$1')
      .split(/\s+/)
      .filter((comparator) => comparator !== ''),
  )
}

/**
 * Whether a text is a range of versions as posture checks have them: comparators separated by
 * blanks must all hold, and one of the groups separated by `||`. `>=10.0.0 <11.0.0 || 12.x`.
 */
export function isVersionRange(text: string): boolean {
  return groupsOf(text).every(
    (group) => group.length > 0 && group.every((comparator) => COMPARATOR.test(comparator)),
  )
}

/**
 * Whether a text is one whole version, `1.2.3` or `1.2.3-rc.1+build` (Semantic Versioning 2.0.0).
 */
export function isVersion(text: string): boolean {
  return WHOLE.test(text)
}

/** False also for a version that is not whole, and for what is no range. */
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
  const isBelow = compareVersions(version, first) < 0
  // A wild version is all from its first on, up to the one that is beyond it.
  const isAbove =
    beyond === null ? compareVersions(version, first) > 0 : compareVersions(version, beyond) >= 0
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

/** The first version of a bound and the first that is past it; null: it is one version. */
function boundsOf(bound: string): readonly [first: string, beyond: string | null] {
  if (!bound.includes('x') || isVersion(bound)) return [bound, null]
  const [major = '0', minor = 'x'] = bound.split('.')
  if (minor === 'x') return [`${major}.0.0`, `${Number(major) + 1}.0.0`]
  return [`${major}.${minor}.0`, `${major}.${Number(minor) + 1}.0`]
}

/**
 * Precedence of two whole versions; build metadata does not count (Semantic Versioning 2.0.0, 11).
 */
function compareVersions(a: string, b: string): number {
  const [, ...ofA] = VERSION.exec(a) ?? []
  const [, ...ofB] = VERSION.exec(b) ?? []
  for (const at of [0, 1, 2]) {
    const difference = Number(ofA[at]) - Number(ofB[at])
    if (difference !== 0) return difference
  }
  return comparePrereleases((ofA[3] ?? '').slice(1), (ofB[3] ?? '').slice(1))
}

/** A release comes after all that led to it. */
function comparePrereleases(a: string, b: string): number {
  if (a === '' || b === '') return Number(a === '') - Number(b === '')
  const ofA = a.split('.')
  const ofB = b.split('.')
  for (let at = 0; at < Math.min(ofA.length, ofB.length); at += 1) {
    const difference = compareIdentifiers(ofA[at] ?? '', ofB[at] ?? '')
    if (difference !== 0) return difference
  }
  return ofA.length - ofB.length
}

/** Numbers by their value and before texts, which go by their bytes. */
function compareIdentifiers(a: string, b: string): number {
  const isNumber = [a, b].map((text) => /^[0-9]+$/.test(text))
  if (isNumber[0] === true && isNumber[1] === true) {
    const [left, right] = [BigInt(a), BigInt(b)]
    return left === right ? 0 : left < right ? -1 : 1
  }
  if (isNumber[0] !== isNumber[1]) return isNumber[0] === true ? -1 : 1
  return a === b ? 0 : a < b ? -1 : 1
}
