/** Ends of an axis, in tenths of a power of ten; bars then fill most of its height. */
const steps = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100] as const

/** The smallest end of an axis that is not below the value; 1 for 0. */
export function axisMaximum(value: number): number {
  if (value <= 10) return Math.max(1, Math.ceil(value))
  const tenth = 10 ** (Math.floor(Math.log10(value)) - 1)
  return (steps.find((step) => step * tenth >= value) ?? 100) * tenth
}
