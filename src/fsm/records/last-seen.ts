import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { RouterPresenceField } from '../../entities/fields.ts'
import type { Router } from '../../entities/kinds/router.ts'
import { SEEN_LEVEL } from '../../ports/feature-level.ts'
import type { RouterPresence } from '../../ports/router-status.ts'
import type { SessionUses } from '../../ports/session-uses.ts'
import type { Consequences } from '../apply/context.ts'
import type { State } from './state.ts'

const MINUTE_MS = 60_000

/** A session that waits for its code has authenticated nothing yet. */
function isBegun({ clientId, codeHash }: ApiSession): boolean {
  return Boolean(clientId) && codeHash === ''
}

/**
 * Last authenticated activity of an identity, to the minute, UTC ms; null: none. It is that of its
 * sessions, or of an ended one, whose activity is stored when it ends.
 */
export function lastSeenMs(
  state: Pick<State, 'get' | 'table'>,
  { id, lastSeenAt }: Identity,
  uses: SessionUses,
): number | null {
  let seenMs: number | null = lastSeenAt ?? null
  for (const sessionId of state.table('apiSession').indexes.ids('identityId', id)) {
    const session = state.get('apiSession', sessionId)
    if (session === undefined || isBegun(session)) continue
    const atMs = wholeMinute(uses.lastUseMs(session))
    if (seenMs === null || atMs > seenMs) seenMs = atMs
  }
  return seenMs
}

/**
 * Stores the activity of a session that ends with its identity. The revision stays, so that a
 * log-out refuses no conditional write of an administrator.
 */
export function keepLastSeen(session: ApiSession, { state, context }: Consequences): void {
  if (state.featureLevel < SEEN_LEVEL || isBegun(session)) return
  const identity = state.get('identity', session.identityId)
  if (identity === undefined) return
  const usedMs = session.lastActivityAt ?? session.createdAt
  // The request that ends its own session is its last activity.
  const isOwnRequest = context.sessionId === session.id
  const seenMs = wholeMinute(isOwnRequest ? Math.max(usedMs, context.logTimeMs) : usedMs)
  if (seenMs <= (identity.lastSeenAt ?? 0)) return
  state.put('identity', { ...identity, lastSeenAt: seenMs })
}

function wholeMinute(ms: number): number {
  return ms - (ms % MINUTE_MS)
}

/** Since when a router is online or offline, UTC ms; null if it is not, or nobody knows. */
export function routerPresenceMs(
  { onlineSince = null, offlineSince = null }: Pick<Router, 'onlineSince' | 'offlineSince'>,
  { connectedMs, returnedMs, lostMs }: RouterPresence,
  shows: RouterPresenceField,
): number | null {
  if (shows === 'offlineSince') return connectedMs !== null ? null : (lostMs ?? offlineSince)
  if (connectedMs === null) return null
  // It may have connected to another controller before this one started.
  return returnedMs ?? onlineSince ?? connectedMs
}
