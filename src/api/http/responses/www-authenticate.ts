import type { CallerCredentials } from '../../../auth/principal/credentials.ts'
import type { ExternalJwtChallenge } from '../../../auth/tokens/external-jwt-challenge.ts'
import { missingFactorChallenge } from '../../../auth/principal/external-jwt-factor.ts'
import type { SessionWithIdentity } from '../../../auth/principal/principal.ts'
import type { ChallengeReason } from '../../../auth/sessions/request-authenticator.ts'
import type { StateView } from '../../../ports/state-view.ts'

interface FactorHeadersDeps {
  readonly state: StateView
}

/**
 * Maximum signers in the headers, because more would exceed the header size that clients read. The
 * operation that lists external JWT signers returns all of them.
 */
const SIGNERS_MAX = 10
/**
 * Matches a text that needs no escape in a quoted string and does not contain `|`, which separates
 * the signers.
 */
const PLAIN = /^[\x21\x23-\x5b\x5d-\x7b\x7d\x7e]{1,256}$/

const descriptions = {
  missing: 'no matching token was provided',
  invalid: 'token is invalid',
  expired: 'token expired',
} as const

/**
 * Value of WWW-Authenticate (RFC 6750, 3). One space separates attributes, as OpenZiti clients
 * expect. The text contains token types and signers, never identities. A signer whose issuer cannot
 * be quoted is omitted.
 */
export function wwwAuthenticateValue(
  challenge: ChallengeReason | ExternalJwtChallenge,
  isOidcOffered: boolean,
): string {
  if (challenge === 'bearer-invalid') return ofOidc('invalid')
  if (challenge === 'bearer-expired') return ofOidc('expired')
  if (typeof challenge === 'string') {
    const own = `zt-session realm="zt-session" error="${challenge}" error_description="${descriptions[challenge]}"`
    return challenge === 'missing' && isOidcOffered ? `${own},${ofOidc(challenge)}` : own
  }
  const { realm, error, signers } = challenge
  const listed = signers.filter(({ issuer }) => PLAIN.test(issuer)).slice(0, SIGNERS_MAX)
  const ids = listed.map(({ id }) => id).join('|')
  const issuers = listed.map(({ issuer }) => issuer).join('|')
  return `Bearer realm="${realm}" error="${error}" error_description="${descriptions[error]}" id="${ids}" issuer="${issuers}"`
}

function ofOidc(error: keyof typeof descriptions): string {
  return `Bearer realm="openziti-oidc" error="${error}" error_description="${descriptions[error]}"`
}

/**
 * Headers of a successful response about a session. If the session lacks an external JWT, OpenZiti
 * clients find the required signer in these headers; otherwise, there are none.
 */
export function pendingFactorHeaders(
  deps: FactorHeadersDeps,
  shown: Pick<CallerCredentials, 'bearers'>,
  caller: Pick<SessionWithIdentity, 'pendingFactors'>,
): Record<string, string> {
  const challenge = missingFactorChallenge(deps, shown, caller)
  return challenge === null ? {} : { 'www-authenticate': wwwAuthenticateValue(challenge, false) }
}
