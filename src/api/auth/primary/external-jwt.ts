import type { ExternalJwtSigner } from '../../../entities/kinds/external-jwt-signer.ts'
import type { Identity } from '../../../entities/kinds/identity.ts'
import { authPolicyOf } from '../../../fsm/apply/authentication.ts'
import { isDisabled } from '../../../lib/is-disabled.ts'
import { takesTokensOf } from '../../../fsm/apply/external-tokens.ts'
import { Problem } from '../../../lib/problems.ts'
import type { RequestContext } from '../../call.ts'
import type { Reply } from '../../answers/envelope.ts'
import type { ApiParts } from '../../parts.ts'
import type { ApiServices } from '../../records/services.ts'
import { judged } from '../../records/writes.ts'
import type { TokenChallenge } from '../external-jwt/challenge.ts'
import type { VerifiedToken } from '../external-jwt/token-judge.ts'
import { readToken } from '../external-jwt/token-text.ts'
import { type LogInBody, type Proof, SessionOpener } from '../open-session.ts'
import { judgedNowMs } from '../judged-now.ts'

type Fault = TokenChallenge['error']

/** Log-in by a token of an identity provider, in `Authorization: Bearer`. */
export class ExternalJwtLogIn {
  readonly #parts: ApiParts
  readonly #services: ApiServices
  readonly #opener: SessionOpener

  constructor(parts: ApiParts, services: ApiServices) {
    this.#parts = parts
    this.#services = services
    this.#opener = new SessionOpener(parts, services)
  }

  /**
   * A refusal tells of the token alone: whether an identity exists, is disabled, or may not log in
   * that way looks the same as a bad signature.
   */
  async logIn(call: RequestContext, given: LogInBody): Promise<Reply> {
    this.#services.tokens.requireKey()
    const texts = call.credentials.bearers()
    if (texts.length === 0) return this.#refuse(call, 'missing')
    const readable = texts.filter((text) => readToken(text) !== null)
    if (readable.length === 0) return this.#refuse(call, 'invalid')
    return await judged(call, this.#parts.limits, async () => {
      // A signer or an identity that was written elsewhere a moment ago is known here after this.
      await this.#parts.reads.reachLatest()
      const proof = await this.#prove(call, readable)
      if (typeof proof === 'string') return this.#refuse(call, proof)
      try {
        return await this.#opener.open(call, proof, given)
      } catch (error) {
        // What changed before the entry was applied is told in no other way than what was so all
        // along.
        const isRefused = error instanceof Problem && error.code === 'INVALID_AUTH'
        if (isRefused) return this.#refuse(call, 'invalid')
        throw error
      }
    })
  }

  /**
   * By the first token that is good for somebody who may log in by it. Where another one is good
   * for somebody else the request proves neither: a proxy may have gone by the one that is not
   * taken here.
   */
  async #prove(call: RequestContext, texts: readonly string[]): Promise<Proof | Fault> {
    let fault: Fault = 'invalid'
    let proof: Proof | null = null
    for (const text of texts) {
      const found = await this.#services.externalTokens.judge(call.credentials.address, text)
      if (typeof found === 'string') {
        fault = found
        continue
      }
      const identityId = this.#holderOf(found)
      if (identityId === null) fault = 'invalid'
      else if (proof === null) proof = { identityId, authenticator: undefined, token: found }
      else if (proof.identityId !== identityId) return 'invalid'
    }
    return proof ?? fault
  }

  /** The identity that may log in by this token, or null. */
  #holderOf({ signerId, claim }: VerifiedToken): string | null {
    const { state } = this.#parts
    const signer = state.get<ExternalJwtSigner>('externalJwtSigner', signerId)
    if (signer === undefined) return null
    const identity = signer.useExternalId
      ? (state.find('identity', 'externalId', claim) as Identity | undefined)
      : state.get<Identity>('identity', claim)
    if (identity === undefined || isDisabled(identity, judgedNowMs(this.#parts))) return null
    return takesTokensOf(authPolicyOf(state, identity), signerId) ? identity.id : null
  }

  #refuse(call: RequestContext, error: Fault): never {
    const { state } = this.#parts
    const signers = state.findAll<ExternalJwtSigner>('externalJwtSigner', 'enabled', 'true')
    call.challenge = { realm: 'openziti-primary-ext-jwt', error, signers }
    throw new Problem('UNAUTHORIZED')
  }
}
