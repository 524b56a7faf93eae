import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { RouterPresenceField } from '../../entities/fields.ts'
import type { Router } from '../../entities/kinds/router.ts'
import type { RouterPresence } from '../../ports/router-status.ts'
import type { SessionUses } from '../../ports/session-uses.ts'
import type { State } from './state.ts'

const MINUTE_MS = 60_000

/**
 * Whether the client of the session has not yet redeemed its authorization code. Such a session has
 * authenticated no request yet.
 */
export function isSessionAwaitingCode({ clientId, codeHash }: ApiSession): boolean {
  return Boolean(clientId) && codeHash === ''
}

/**
 * Last authenticated activity of an identity, to the minute, UTC ms; null: none. It is the latest
 * activity of the identity's current sessions, or of an ended session: when a session ends, its
 * last activity is stored in the identity.
 */
export function lastSeenMs(
  state: Pick<State, 'get' | 'table'>,
  { id, lastSeenAt }: Identity,
  uses: SessionUses,
): number | null {
  let seenMs: number | null = lastSeenAt ?? null
  for (const sessionId of state.table('apiSession').indexes.ids('identityId', id)) {
    const session = state.get('apiSession', sessionId)
    if (session === undefined || isSessionAwaitingCode(session)) continue
    const atMs = roundDownToMinute(uses.lastUseMs(session))
    if (seenMs === null || atMs > seenMs) seenMs = atMs
  }
  return seenMs
}

export function roundDownToMinute(ms: number): number {
  return ms - (ms % MINUTE_MS)
}

/**
 * Time since which a router has been online, or offline, UTC ms; null if the router is not in that
 * state, or if the time is unknown.
 */
export function routerPresenceMs(
  { onlineSince = null, offlineSince = null }: Pick<Router, 'onlineSince' | 'offlineSince'>,
  { connectedMs, returnedMs, lostMs }: RouterPresence,
  shows: RouterPresenceField,
): number | null {
  if (shows === 'offlineSince') return connectedMs !== null ? null : (lostMs ?? offlineSince)
  if (connectedMs === null) return null
  // The stored time `onlineSince` takes precedence over the observed `connectedMs`: the router may
  // have connected to another controller before this controller started.
  return returnedMs ?? onlineSince ?? connectedMs
}
