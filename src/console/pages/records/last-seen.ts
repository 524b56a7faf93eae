import type { Draft } from './json-values.ts'

/**
 * When an identity was last seen; null: never. That time is cut to the minute, so it may be before
 * the creation of the identity: then the time of the creation.
 */
export function lastSeenTime({ lastSeenAt, createdAt }: Draft): string | null {
  if (typeof lastSeenAt !== 'string') return null
  return typeof createdAt === 'string' && createdAt > lastSeenAt ? createdAt : lastSeenAt
}
