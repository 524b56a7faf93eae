import { decodeJwt } from 'jose'

import type { Session } from '../../entities/kinds/session.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { JWT_CHARACTERS_MAX } from '../../pki/jwt-verifier.ts'
import type { Clock } from '../../lib/clock.ts'
import type { DialBind } from '../../ports/state-view.ts'
import type { JwtSigner } from './jwt-signer.ts'

/**
 * Lifetime of service session tokens. The lifetime can be long, because a token becomes invalid
 * when its API session ends.
 */
const LIFETIME_SECONDS = 365 * 24 * 60 * 60
const AUDIENCE = 'openziti'
/** Value of the type claim that marks service session tokens in OpenZiti. */
const SESSION_TOKEN_TYPE = 's'

interface ServiceSessionTokenDeps {
  readonly jwt: JwtSigner
  readonly clock: Clock
  /** Base URLs of each API, the preferred URL first. */
  readonly bindings: Readonly<Partial<Record<'edge-client' | 'edge-management', readonly string[]>>>
}

/**
 * The token that a client presents to edge routers for a service session.
 * @param isLegacy whether its API session is not an OIDC session, so that routers query controllers
 * about it.
 */
export async function signSessionToken(
  { jwt, clock, bindings }: ServiceSessionTokenDeps,
  session: Session,
  isLegacy: boolean,
): Promise<string> {
  const nowSeconds = Math.floor(clock.nowMs() / 1000)
  return await jwt.sign({
    iss: bindings['edge-client']?.[0] ?? bindings['edge-management']?.[0] ?? '',
    sub: session.serviceId,
    aud: [AUDIENCE],
    iat: nowSeconds,
    exp: nowSeconds + LIFETIME_SECONDS,
    jti: session.id,
    z_asid: session.apiSessionId,
    z_iid: session.identityId,
    z_st: session.type,
    z_t: SESSION_TOKEN_TYPE,
    z_leg: isLegacy,
  })
}

/** The service session that a verified token names; the session may have ended. */
export interface VerifiedServiceSessionToken {
  readonly sessionId: string
  readonly apiSessionId: string
  readonly serviceId: string
  readonly type: DialBind
}

/** The service session of a token that a member signed; null for any other token. */
export async function verifyServiceSessionToken(
  { jwt }: Pick<ServiceSessionTokenDeps, 'jwt'>,
  token: string,
): Promise<VerifiedServiceSessionToken | null> {
  const claims = await jwt.verify(token)
  if (claims === null || !isFor(claims, AUDIENCE)) return null
  const { jti: sessionId, sub: serviceId, z_asid: apiSessionId } = claims
  const type = (['Dial', 'Bind'] as const).find((known) => known === claims['z_st'])
  if (claims['z_t'] !== SESSION_TOKEN_TYPE || type === undefined) return null
  return typeof sessionId === 'string' &&
    typeof serviceId === 'string' &&
    typeof apiSessionId === 'string'
    ? { sessionId, apiSessionId, serviceId, type }
    : null
}

/** The service session id in a token, without verification; null if the token contains none. */
export function unverifiedServiceSessionId(token: string): string | null {
  if (token.length > JWT_CHARACTERS_MAX) return null
  try {
    const { jti, z_t: type } = decodeJwt(token)
    return type === SESSION_TOKEN_TYPE && typeof jti === 'string' ? jti : null
  } catch {
    return null
  }
}

function isFor({ aud }: JsonObject, audience: string): boolean {
  return aud === audience || (Array.isArray(aud) && aud.includes(audience))
}
