import { claimMatchesIdentity, pendingFactorsWithToken } from '../../fsm/apply/external-tokens.ts'
import type { CallerCredentials } from './credentials.ts'
import type { SessionWithIdentity } from './principal.ts'
import type { ExternalJwtChallenge } from '../tokens/external-jwt-challenge.ts'
import type { TokenVerifier, VerifiedToken } from '../tokens/token-verifier.ts'
import { parseUnverifiedToken } from '../tokens/unverified-token.ts'
import type { StateView } from '../../ports/state-view.ts'

/** A caller whose pending second factors are checked. */
type FactorHolder = Pick<SessionWithIdentity, 'identity' | 'pendingFactors'>

/** Requests with a token of the required signer whose signature is valid, but which has expired. */
const expiredAt = new WeakSet<Pick<CallerCredentials, 'bearers'>>()

/**
 * The external JWT as a second factor. Each request must contain the JWT, because a session does
 * not record it. The JWT counts only for the identity that its claim names; otherwise every user of
 * the provider could complete the session of any identity.
 */
export class ExternalJwtFactor {
  readonly #state: StateView
  readonly #judge: TokenVerifier

  constructor({ state }: { readonly state: StateView }, judge: TokenVerifier) {
    this.#state = state
    this.#judge = judge
  }

  /**
   * The valid external JWT in this request that its session requires; null if the session requires
   * none, or the request contains none. Returns a promise only if a signature must be verified.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS, in the promise.
   */
  tokenFor(
    shown: CallerCredentials,
    caller: FactorHolder,
  ): VerifiedToken | null | Promise<VerifiedToken | null> {
    const signerId = signerAsked(caller)
    if (signerId === null) return null
    const unknown: string[] = []
    for (const text of shown.bearers()) {
      const known = this.#judge.recall(text)
      if (known === null) unknown.push(text)
      else if (this.#fits(known, signerId, caller)) return known
    }
    return unknown.length === 0 ? null : this.#verified(shown, unknown, signerId, caller)
  }

  async #verified(
    shown: CallerCredentials,
    texts: readonly string[],
    signerId: string,
    caller: FactorHolder,
  ): Promise<VerifiedToken | null> {
    for (const text of texts) {
      // Skips a token of another signer without verifying it.
      if (this.#judge.signerNamedIn(text)?.id !== signerId) continue
      const found = await this.#judge.judge(shown.address, text)
      if ('error' in found) {
        if (found.error === 'expired') expiredAt.add(shown)
      } else if (this.#fits(found, signerId, caller)) return found
    }
    return null
  }

  /**
   * The caller without the pending factor that the token of its request satisfies; the unchanged
   * caller if the token satisfies none.
   */
  completed(caller: SessionWithIdentity, token: VerifiedToken | null): SessionWithIdentity {
    const signerId = signerAsked(caller)
    if (token === null || signerId === null || !this.#fits(token, signerId, caller)) return caller
    const pendingFactors = pendingFactorsWithToken(this.#state, caller.pendingFactors, token)
    const isAdmin = caller.identity.isAdmin && pendingFactors.length === 0
    return { ...caller, isAdmin, pendingFactors, token }
  }

  #fits(token: VerifiedToken, signerId: string, { identity }: FactorHolder): boolean {
    if (token.signerId !== signerId || !this.#judge.isInForce(token)) return false
    const signer = this.#state.get('externalJwtSigner', signerId)
    // @guard forged-tokens--person, header-smuggling--beside
    return signer !== undefined && claimMatchesIdentity(signer, token.claim, identity)
  }
}

/**
 * Challenge that names the signer whose token the client's requests must contain; null if none is
 * required.
 */
export function missingFactorChallenge(
  { state }: { readonly state: StateView },
  shown: Pick<CallerCredentials, 'bearers'>,
  caller: Pick<SessionWithIdentity, 'pendingFactors'>,
): ExternalJwtChallenge | null {
  const signerId = signerAsked(caller)
  if (signerId === null) return null
  const signer = state.get('externalJwtSigner', signerId)
  return {
    realm: 'openziti-secondary-ext-jwt',
    error: factorError(shown, signer?.issuer),
    signers: signer === undefined ? [] : [signer],
  }
}

/**
 * Returns `expired` only for a token whose signature was verified. For any other token, the
 * response reveals nothing about its times.
 */
function factorError(
  shown: Pick<CallerCredentials, 'bearers'>,
  issuer: string | null | undefined,
): ExternalJwtChallenge['error'] {
  if (expiredAt.has(shown)) return 'expired'
  // Ignores tokens of other issuers: the session's own token, or the token with which the session
  // was opened, may be among them.
  const isOfSigner = (text: string): boolean => parseUnverifiedToken(text)?.issuer === issuer
  return issuer && shown.bearers().some(isOfSigner) ? 'invalid' : 'missing'
}

/** The signer whose token a session still requires. */
function signerAsked({
  pendingFactors,
}: Pick<SessionWithIdentity, 'pendingFactors'>): string | null {
  for (const factor of pendingFactors) if (factor.kind === 'extJwt') return factor.signerId
  return null
}
