import { authPolicyOf } from '../../fsm/apply/authentication.ts'
import { takesTokensOf } from '../../fsm/apply/external-tokens.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { TokenChallenge } from '../tokens/challenge.ts'
import type { TokenJudge, VerifiedToken } from '../tokens/token-judge.ts'
import { readToken } from '../tokens/token-text.ts'
import type { Proof } from './proof.ts'
import { type Clock, judgedNowMs } from '../../lib/clock.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'

type Fault = TokenChallenge['error']

export interface TokenProofDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly reads: LatestReads
  readonly externalTokens: TokenJudge
}

/** Log-in by an external JWT in `Authorization: Bearer`. */
export async function proveToken(
  deps: TokenProofDeps,
  { bearers, address }: Pick<CallerCredentials, 'bearers' | 'address'>,
): Promise<Proof | Fault> {
  const texts = bearers()
  if (texts.length === 0) return 'missing'
  const readable = texts.filter((text) => readToken(text) !== null)
  if (readable.length === 0) return 'invalid'
  // Another controller may have changed the signer or the identity a moment ago.
  await deps.reads.reachLatest()
  return await proofOf(deps, address, readable)
}

/**
 * Accepts the first token that authenticates an identity. If another token authenticates a
 * different identity, the request is refused: a proxy may have used the other one.
 */
async function proofOf(
  deps: TokenProofDeps,
  address: string,
  texts: readonly string[],
): Promise<Proof | Fault> {
  let fault: Fault = 'invalid'
  let proof: Proof | null = null
  for (const text of texts) {
    const found = await deps.externalTokens.judge(address, text)
    if (typeof found === 'string') {
      fault = found
      continue
    }
    const identityId = holderOf(deps, found)
    // @guard header-smuggling--two-persons
    if (identityId === null) fault = 'invalid'
    else if (proof === null) proof = { identityId, authenticator: undefined, token: found }
    else if (proof.identityId !== identityId) return 'invalid'
  }
  return proof ?? fault
}

/** The identity that may log in with this token, or null. */
function holderOf(deps: TokenProofDeps, { signerId, claim }: VerifiedToken): string | null {
  const { state } = deps
  const signer = state.get('externalJwtSigner', signerId)
  if (signer === undefined) return null
  const identity = signer.useExternalId
    ? state.find('identity', 'externalId', claim)
    : state.get('identity', claim)
  if (identity === undefined || isDisabled(identity, judgedNowMs(deps))) return null
  return takesTokensOf(authPolicyOf(state, identity), signerId) ? identity.id : null
}

/** A refusal describes only the token, so that it does not reveal whether an identity exists. */
export function tokenRefusal(
  { state }: Pick<TokenProofDeps, 'state'>,
  error: Fault,
): TokenChallenge {
  const signers = state.findAll('externalJwtSigner', 'enabled', 'true')
  return { realm: 'openziti-primary-ext-jwt', error, signers }
}
