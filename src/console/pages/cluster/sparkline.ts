type Values = readonly (number | null)[]

/** The newest and the greatest value, null if nothing was measured, and the sum. */
export function summarizeValues(values: Values): {
  readonly last: number | null
  readonly most: number | null
  readonly sum: number
} {
  const known = values.filter((value): value is number => value !== null)
  return {
    last: known.at(-1) ?? null,
    most: known.length === 0 ? null : Math.max(...known),
    sum: known.reduce((all, value) => all + value, 0),
  }
}

/**
 * A path from left to right through the measured values.
 * @param drawn number of first values that the path contains; the scale is that of all values.
 */
export function sparklinePath(
  values: Values,
  width: number,
  height: number,
  drawn = values.length,
): string {
  const { most } = summarizeValues(values)
  if (most === null) return ''
  const top = most === 0 ? 1 : most
  const step = width / Math.max(1, values.length - 1)
  return values
    .slice(0, drawn)
    .flatMap((value, at) => {
      if (value === null) return []
      const y = height - 1 - (value / top) * (height - 2)
      return [`${(at * step).toFixed(1)} ${y.toFixed(1)}`]
    })
    .map((point, at) => (at === 0 ? 'M' : 'L') + point)
    .join('')
}
