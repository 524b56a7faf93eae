import type { CallerCredentials } from '../../../auth/principal/credentials.ts'
import type { TokenChallenge } from '../../../auth/tokens/challenge.ts'
import { factorChallenge } from '../../../auth/principal/token-factor.ts'
import type { SessionHolder } from '../../../auth/principal/principal.ts'
import type { Challenge } from '../../../auth/sessions/session-guard.ts'
import type { StateView } from '../../../ports/state-view.ts'

interface FactorHeadersDeps {
  readonly state: StateView
}

/**
 * Maximum signers. More would not fit the headers that clients read; the list of signers has all of
 * them.
 */
const SIGNERS_MAX = 10
/** Characters that need no escape inside quotes. */
const PLAIN = /^[\x21\x23-\x5b\x5d-\x7b\x7d\x7e]{1,256}$/

const descriptions = {
  missing: 'no matching token was provided',
  invalid: 'token is invalid',
  expired: 'token expired',
} as const

/**
 * WWW-Authenticate (RFC 6750, 3). Attributes are separated by one blank, as OpenZiti clients
 * expect. It names tokens and signers, never identities. A signer whose issuer cannot be quoted is
 * left out.
 */
export function challengeText(
  challenge: Challenge | TokenChallenge,
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
 * Headers of a successful answer about a session that lacks an external JWT. OpenZiti clients read
 * them to learn which signer is required.
 */
export function factorHeaders(
  deps: FactorHeadersDeps,
  shown: Pick<CallerCredentials, 'bearers'>,
  caller: Pick<SessionHolder, 'pendingFactors'>,
): Record<string, string> {
  const challenge = factorChallenge(deps, shown, caller)
  return challenge === null ? {} : { 'www-authenticate': challengeText(challenge, false) }
}
