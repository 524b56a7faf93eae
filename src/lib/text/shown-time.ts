/** A time that never was, as the API family writes it. */
export const never = '0001-01-01T00:00:00.000Z'

/** @param atMs UTC; null: never. */
export function shownTime(atMs: number | null): string {
  return atMs === null ? never : new Date(atMs).toISOString()
}
