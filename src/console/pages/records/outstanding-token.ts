import { isObject } from './json-values.ts'
import type { ConsoleKind } from './kinds.ts'
import type { RecordRow } from './record-data.ts'

interface Outstanding {
  readonly jwt: string
  readonly expiresAt: string
}

/** The enrollment token of a record, even if the token has expired; null if there is none. */
export function findOutstandingToken(
  kind: Pick<ConsoleKind, 'path'>,
  record: RecordRow,
): Outstanding | null {
  if (kind.path === 'edge-routers' || kind.path === 'transit-routers') {
    return tokenIn(record['enrollmentJwt'], record['enrollmentExpiresAt'])
  }
  if (kind.path === 'enrollments') return tokenIn(record['jwt'], record['expiresAt'])
  const { enrollment } = record as { readonly enrollment?: unknown }
  if (kind.path !== 'identities' || !isObject(enrollment)) return null
  const [one] = Object.values(enrollment).filter(isObject)
  return one === undefined ? null : tokenIn(one['jwt'], one['expiresAt'])
}

function tokenIn(jwt: unknown, expiresAt: unknown): Outstanding | null {
  if (typeof jwt !== 'string' || jwt === '') return null
  return { jwt, expiresAt: typeof expiresAt === 'string' ? expiresAt : '' }
}

/** Whether the controller refuses the enrollment token of a record because the token expired. */
export function hasExpiredToken(
  kind: Pick<ConsoleKind, 'path'>,
  record: RecordRow,
  nowMs = Date.now(),
): boolean {
  return Date.parse(findOutstandingToken(kind, record)?.expiresAt ?? '') <= nowMs
}
