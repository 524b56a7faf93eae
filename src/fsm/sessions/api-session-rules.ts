import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Consequences, KindRules } from '../apply/context.ts'
import { revokeSession } from './revocation-rules.ts'

export const apiSessionRules: KindRules<ApiSession> = { afterDelete: revokeTokens }

/**
 * Routers verify tokens of OIDC by themselves, and close what they carry for a session once they
 * hear of its revocation. One without a redeemed code never had a token.
 */
function revokeTokens({ id, clientId, codeHash }: ApiSession, consequences: Consequences): void {
  // Sessions of before level 2 have neither.
  // @guard claims-by-access-token--told
  if (clientId && codeHash) revokeSession(id, consequences)
}
