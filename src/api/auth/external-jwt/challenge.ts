import type { ExternalJwtSigner } from '../../../entities/kinds/external-jwt-signer.ts'

/** What a client is told that has brought no good token of an identity provider. */
export interface TokenChallenge {
  readonly realm: 'openziti-primary-ext-jwt' | 'openziti-secondary-ext-jwt'
  readonly error: 'missing' | 'invalid' | 'expired'
  /** Those whose tokens are taken. */
  readonly signers: readonly Pick<ExternalJwtSigner, 'id' | 'issuer'>[]
}

/** More would not fit the headers that clients read; the list of signers has them all. */
const SIGNERS_MAX = 10
/** What can stand within quotes as it is, and between bars. */
const PLAIN = /^[\x21\x23-\x5b\x5d-\x7b\x7d\x7e]{1,256}$/

const descriptions = {
  missing: 'no matching token was provided',
  invalid: 'token is invalid',
  expired: 'token expired',
} as const

/**
 * WWW-Authenticate (RFC 6750, 3), attributes as clients of this API family read them. It tells of
 * the token and of signers, never of identities. An issuer that could not be quoted is left out
 * with its signer.
 */
export function tokenChallengeText({ realm, error, signers }: TokenChallenge): string {
  const told = signers.filter(({ issuer }) => PLAIN.test(issuer)).slice(0, SIGNERS_MAX)
  const ids = told.map(({ id }) => id).join('|')
  const issuers = told.map(({ issuer }) => issuer).join('|')
  return `Bearer realm="${realm}" error="${error}" error_description="${descriptions[error]}" id="${ids}" issuer="${issuers}"`
}
