import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { WriteConsequences, KindRules } from '../apply/command-context.ts'
import { LAST_SEEN_FEATURE_LEVEL } from '../../ports/feature-level.ts'
import { isSessionAwaitingCode, roundDownToMinute } from '../records/last-seen.ts'
import { revokeSession } from './revocation-rules.ts'

export const apiSessionRules: KindRules<ApiSession> = {
  afterDelete(session, consequences) {
    keepLastSeen(session, consequences)
    revokeTokens(session, consequences)
  },
}

/**
 * Stores the last activity of a session in its identity when the session ends. The revision of the
 * identity stays the same, so that an administrator's conditional write is not refused only because
 * a session ended.
 */
function keepLastSeen(session: ApiSession, { state, context }: WriteConsequences): void {
  if (state.featureLevel < LAST_SEEN_FEATURE_LEVEL || isSessionAwaitingCode(session)) return
  const identity = state.get('identity', session.identityId)
  if (identity === undefined) return
  const usedMs = session.lastActivityAt ?? session.createdAt
  // A request that ends its own session counts as the last activity of that session.
  const isOwnRequest = context.sessionId === session.id
  const seenMs = roundDownToMinute(isOwnRequest ? Math.max(usedMs, context.logTimeMs) : usedMs)
  if (seenMs <= (identity.lastSeenAt ?? 0)) return
  state.put('identity', { ...identity, lastSeenAt: seenMs })
}

/**
 * Revokes the OIDC tokens of an ended session: routers verify these tokens themselves, and close
 * the session's circuits when they receive the revocation. A session whose code was not redeemed
 * never had a token.
 */
function revokeTokens(
  { id, clientId, codeHash }: ApiSession,
  consequences: WriteConsequences,
): void {
  // Sessions created before feature level 2 have neither field.
  // @guard claims-by-access-token--told
  if (clientId && codeHash) revokeSession(id, consequences)
}
