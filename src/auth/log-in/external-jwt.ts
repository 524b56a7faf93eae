import { identityAuthPolicy } from '../../fsm/apply/authentication.ts'
import { acceptsSignerTokens } from '../../fsm/apply/external-tokens.ts'
import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { RefusalCause } from '../../lib/refusal-reason.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { ExternalJwtChallenge } from '../tokens/external-jwt-challenge.ts'
import {
  type TokenVerifier,
  unreadableTokenRefusal,
  type VerifiedToken,
} from '../tokens/token-verifier.ts'
import { parseUnverifiedToken } from '../tokens/unverified-token.ts'
import type { CredentialProof } from './proof.ts'
import { type Clock, proposalNowMs } from '../../lib/clock.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'

export interface ExternalJwtLogInDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly reads: LatestReads
  readonly externalTokens: TokenVerifier
}

/** Log-in by an external JWT in `Authorization: Bearer`. */
export async function authenticateByToken(
  deps: ExternalJwtLogInDeps,
  { bearers, address }: Pick<CallerCredentials, 'bearers' | 'address'>,
): Promise<CredentialProof | ExternalJwtRefusal> {
  const texts = bearers()
  const [first] = texts
  if (first === undefined) return { error: 'missing', cause: { reason: 'TOKEN_MISSING' } }
  const readable = texts.filter((text) => parseUnverifiedToken(text) !== null)
  if (readable.length === 0) return { ...unreadableTokenRefusal(first), error: 'missing' }
  // Reads the latest state, because the local state may lack a change that another controller has
  // just made to the signer or the identity.
  await deps.reads.reachLatest()
  return await proofOf(deps, address, readable)
}

/**
 * Accepts the first token that authenticates an identity. If another token authenticates a
 * different identity, the request is refused: a proxy in front of the controller may have
 * authorized the request by that other token.
 */
async function proofOf(
  deps: ExternalJwtLogInDeps,
  address: string,
  texts: readonly string[],
): Promise<CredentialProof | ExternalJwtRefusal> {
  let refusal: ExternalJwtRefusal = { error: 'missing', cause: { reason: 'TOKEN_MISSING' } }
  let proof: CredentialProof | null = null
  for (const text of texts) {
    const found = await deps.externalTokens.judge(address, text)
    if ('error' in found) {
      refusal = found
      continue
    }
    const holder = holderOf(deps, found)
    // @guard header-smuggling--two-persons
    if ('reason' in holder) refusal = { error: 'invalid', cause: holder }
    else if (proof === null)
      proof = { identityId: holder.id, authenticator: undefined, token: found }
    else if (proof.identityId !== holder.id) return twoIdentities
  }
  return proof ?? refusal
}

const twoIdentities: ExternalJwtRefusal = {
  error: 'invalid',
  cause: { reason: 'TOKEN_OTHER_IDENTITY' },
}

/** The identity that may log in with this token, or the reason for a refusal. */
function holderOf(
  deps: ExternalJwtLogInDeps,
  { signerId, claim }: VerifiedToken,
): Identity | RefusalCause {
  const signer = deps.state.get('externalJwtSigner', signerId)
  if (signer === undefined) return { reason: 'TOKEN_ISSUER_UNKNOWN', signerId }
  const identity = findIdentityByClaim(deps, signer, claim)
  if (identity === undefined) {
    return { reason: 'IDENTITY_UNKNOWN', signerId, claim: signer.claimsProperty }
  }
  return signerLogInRefusal(deps, signerId, identity) ?? identity
}

/** The identity that the claim of a verified token names. */
export function findIdentityByClaim(
  { state }: Pick<ExternalJwtLogInDeps, 'state'>,
  { useExternalId }: Pick<ExternalJwtSigner, 'useExternalId'>,
  claim: string,
): Identity | undefined {
  return useExternalId ? state.find('identity', 'externalId', claim) : state.get('identity', claim)
}

/** Reason why this identity may not log in with tokens of this signer; null if it may. */
export function signerLogInRefusal(
  deps: Pick<ExternalJwtLogInDeps, 'state' | 'clock'>,
  signerId: string,
  identity: Identity,
): RefusalCause | null {
  if (isDisabled(identity, proposalNowMs(deps))) return { reason: 'IDENTITY_DISABLED', signerId }
  const takes = acceptsSignerTokens(identityAuthPolicy(deps.state, identity), signerId)
  return takes ? null : { reason: 'METHOD_NOT_ALLOWED', signerId }
}

/** A refused log-in by token: the error for the client, and the cause for the operator. */
export interface ExternalJwtRefusal {
  readonly error: ExternalJwtChallenge['error']
  readonly cause: RefusalCause
}

/**
 * Challenge for a refused token. The challenge describes only the token, so that it does not reveal
 * whether an identity exists.
 */
export function refusedTokenChallenge(
  { state }: Pick<ExternalJwtLogInDeps, 'state'>,
  error: ExternalJwtChallenge['error'],
): ExternalJwtChallenge {
  const signers = state.findAll('externalJwtSigner', 'enabled', 'true')
  return { realm: 'openziti-primary-ext-jwt', error, signers }
}
