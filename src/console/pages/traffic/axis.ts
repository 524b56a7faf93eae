/**
 * Possible maxima of an axis for values above 10, in tenths of the greatest power of ten that is
 * not above the value. They are so close together that the highest bar fills at least three
 * quarters of the chart's height.
 */
const steps = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100] as const

/**
 * The smallest possible maximum of an axis that is not below the value: for a value up to 10, the
 * next integer, but at least 1.
 */
export function axisMaximum(value: number): number {
  if (value <= 10) return Math.max(1, Math.ceil(value))
  const tenth = 10 ** (Math.floor(Math.log10(value)) - 1)
  return (steps.find((step) => step * tenth >= value) ?? 100) * tenth
}
