/** Orders names as people do: without regard to case, and numbers by their value. */
export function byName(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}
