import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Consequences, KindRules } from '../apply/context.ts'
import { keepLastSeen } from '../records/last-seen.ts'
import { revokeSession } from './revocation-rules.ts'

export const apiSessionRules: KindRules<ApiSession> = {
  afterDelete(session, consequences) {
    keepLastSeen(session, consequences)
    revokeTokens(session, consequences)
  },
}

/**
 * Routers verify OIDC tokens themselves, and close the circuits of a session when they receive its
 * revocation. A session without a redeemed code never had a token.
 */
function revokeTokens({ id, clientId, codeHash }: ApiSession, consequences: Consequences): void {
  // Sessions created before feature level 2 have neither field.
  // @guard claims-by-access-token--told
  if (clientId && codeHash) revokeSession(id, consequences)
}
