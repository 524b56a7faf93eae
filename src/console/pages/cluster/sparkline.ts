type Values = readonly (number | null)[]

/** The newest and the greatest value; null if nothing was measured. */
export function summarizeValues(values: Values): {
  readonly last: number | null
  readonly most: number | null
} {
  const known = values.filter((value): value is number => value !== null)
  return { last: known.at(-1) ?? null, most: known.length === 0 ? null : Math.max(...known) }
}

/** A path from left to right, with breaks where nothing was measured. */
export function sparklinePath(values: Values, width: number, height: number): string {
  const { most } = summarizeValues(values)
  if (most === null) return ''
  const top = most === 0 ? 1 : most
  const step = width / Math.max(1, values.length - 1)
  let isBroken = true
  return values
    .flatMap((value, at) => {
      if (value === null) {
        isBroken = true
        return []
      }
      const command = isBroken ? 'M' : 'L'
      isBroken = false
      const y = height - 1 - (value / top) * (height - 2)
      return [`${command}${(at * step).toFixed(1)} ${y.toFixed(1)}`]
    })
    .join('')
}
