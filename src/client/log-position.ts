const POSITION = /^([0-9]{1,15}):([0-9]{1,15})$/

/**
 * Parses a position in the log of a cluster, `<generation>:<index>`; null for any other string.
 */
export function parseLogPosition(text: string | null): readonly [number, number] | null {
  const [, generation, index] = POSITION.exec(text ?? '') ?? []
  return generation === undefined ? null : [Number(generation), Number(index)]
}

/** The later of two positions. A string that is not a position is ignored. */
export function laterLogPosition(known: string | null, seen: string | null): string | null {
  const [a, b] = [parseLogPosition(known), parseLogPosition(seen)]
  if (b === null) return known
  const isLater = a === null || b[0] > a[0] || (b[0] === a[0] && b[1] > a[1])
  return isLater ? seen : known
}

/**
 * Whether the first position belongs to an earlier generation than the second; false if either
 * string is not a position.
 */
export function isEarlierGeneration(one: string | null, other: string | null): boolean {
  const [a, b] = [parseLogPosition(one), parseLogPosition(other)]
  return a !== null && b !== null && a[0] < b[0]
}
