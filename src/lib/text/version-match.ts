import compare from 'semver/functions/compare.js'

import {
  isVersion,
  isVersionRange,
  VERSION_COMPARATOR,
  versionRangeGroups,
} from './version-range.ts'

/**
 * Accepts versions such as `5.15.0-091`, which has a leading zero, because devices report such
 * versions.
 */
const LOOSE = true

/** Whether a version is in a range; false for an incomplete version or an invalid range. */
export function isInVersionRange(version: string, range: string): boolean {
  return (
    isVersion(version) &&
    isVersionRange(range) &&
    versionRangeGroups(range).some((group) =>
      group.every((comparator) => holds(version, comparator)),
    )
  )
}

function holds(version: string, comparator: string): boolean {
  const [, operator = '', bound = ''] = VERSION_COMPARATOR.exec(comparator) ?? []
  const [first, beyond] = boundsOf(bound)
  const isBelow = compare(version, first, LOOSE) < 0
  // A wildcard version includes all versions from its first version up to, but not including,
  // `beyond`.
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
