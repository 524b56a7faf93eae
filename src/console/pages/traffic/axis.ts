/** The smallest of 1, 2, 5, 10, 20, … that is not below the value; 1 for 0. */
export function axisMaximum(value: number): number {
  if (value <= 1) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5].find((step) => step * power >= value) ?? 10) * power
}
