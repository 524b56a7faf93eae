import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, TokenEnrollSchema } from '../../../proto/gen/command_pb.ts'
import type { AuthPolicy } from '../../entities/kinds/auth-policy.ts'
import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import { fieldLimits } from '../../entities/fields.ts'
import { enrollmentRefusal } from '../../fsm/enrollment/token-enrollment.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import { enrollmentActor } from '../../ports/actor.ts'
import { claimAt, textClaim } from '../auth/external-jwt/claims.ts'
import type { VerifiedToken } from '../auth/external-jwt/token-judge.ts'
import { originOf, type RequestContext } from '../call.ts'
import type { Reply } from '../answers/envelope.ts'
import type { ApiParts } from '../parts.ts'
import type { ApiServices } from '../records/services.ts'
import { judged } from '../records/writes.ts'
import {
  answerThisCallAlone,
  authoritiesPem,
  enrolledAnswer,
  networkCertificate,
} from './answers.ts'

/** Room for a number that makes the name unique. */
const NUMBER_CHARACTERS = 6

interface NewHolder {
  readonly signer: ExternalJwtSigner
  readonly externalId: string
  readonly name: string
  readonly roleAttributes: readonly string[]
}

/**
 * Whoever holds a token of a signer that is enabled for it becomes an identity: with a certificate
 * for the key of a request, or with the token as the credential.
 */
export class TokenEnrollment {
  readonly #parts: ApiParts
  readonly #services: Pick<ApiServices, 'writer' | 'externalTokens'>

  constructor(parts: ApiParts, services: Pick<ApiServices, 'writer' | 'externalTokens'>) {
    this.#parts = parts
    this.#services = services
  }

  /** @param signerId the one signer whose token it is to be; undefined: any. */
  async enroll(
    call: RequestContext,
    csr: string | undefined,
    signerId: string | undefined,
  ): Promise<Reply> {
    const { reads, limits } = this.#parts
    if (call.credentials.bearers().length === 0) throw untaken('no bearer token in the request')
    await reads.reachLatest()
    return judged(call, limits, async () => {
      const holder = await this.#holderOf(call, signerId)
      this.#checkAllowed(holder, csr !== undefined)
      return csr === undefined
        ? await this.#enrollToToken(call, holder)
        : await this.#enrollToCertificate(call, holder, csr)
    })
  }

  async #holderOf(call: RequestContext, signerId: string | undefined): Promise<NewHolder> {
    const { state } = this.#parts
    for (const text of call.credentials.bearers()) {
      const found = await this.#services.externalTokens.judgeClaims(call.credentials.address, text)
      if (typeof found === 'string') continue
      const { verified, claims } = found
      if (signerId !== undefined && verified.signerId !== signerId) continue
      const signer = state.get<ExternalJwtSigner>('externalJwtSigner', verified.signerId)
      if (signer !== undefined) return newHolder(signer, verified, claims)
    }
    throw untaken('the token is not valid')
  }

  /** The order of refusals of the API family; apply judges the same again. */
  #checkAllowed({ signer, externalId }: NewHolder, isToCertificate: boolean): void {
    const { state } = this.#parts
    if (state.find('identity', 'externalId', externalId) !== undefined) {
      throw new Problem('ENROLLMENT_IDENTITY_ALREADY_ENROLLED')
    }
    const policy = state.get<AuthPolicy>('authPolicy', signer.enrollAuthPolicyId)
    const detail = enrollmentRefusal(signer, policy, isToCertificate)
    if (detail !== null) throw new Problem('INVALID_ENROLLMENT_NOT_ALLOWED', { detail })
  }

  async #enrollToToken(call: RequestContext, holder: NewHolder): Promise<Reply> {
    await this.#write(call, holder, newShortId(), {})
    return enrolledAnswer(this.#parts)
  }

  async #enrollToCertificate(
    call: RequestContext,
    holder: NewHolder,
    requestPem: string,
  ): Promise<Reply> {
    const identityId = newShortId()
    const issued = await this.#parts.issuer.identity(
      { identityId, requestPem },
      call.credentials.address,
    )
    answerThisCallAlone(call)
    const certificate = networkCertificate(issued)
    await this.#write(call, holder, identityId, { authenticatorId: newShortId(), certificate })
    return enrolledAnswer(this.#parts, {
      ca: authoritiesPem(this.#parts),
      cert: issued.chainPem,
    })
  }

  /** One entry: the identity with its credential, or nothing. */
  async #write(
    call: RequestContext,
    { signer, ...holder }: NewHolder,
    identityId: string,
    credential: object,
  ): Promise<void> {
    const { id: signerId, revision } = signer
    const roleAttributes = [...holder.roleAttributes]
    const message = create(TokenEnrollSchema, {
      ...holder,
      signerId,
      identityId,
      roleAttributes,
      ...credential,
    })
    const payload = toBinary(TokenEnrollSchema, message)
    const judgedOn = [{ entity: 'externalJwtSigner', id: signerId, revision }]
    const actor = enrollmentActor(
      { signerId },
      { method: 'token', address: call.credentials.address },
    )
    await this.#services.writer.write(originOf(call, actor), {
      kind: CommandKind.TOKEN_ENROLL,
      payload,
      judgedOn,
    })
  }
}

/**
 * @throws {Problem} INVALID_ENROLLMENT_JWT where a claim that the signer asks for is missing, or is
 * of another kind.
 */
function newHolder(
  signer: ExternalJwtSigner,
  { claim }: VerifiedToken,
  claims: JsonObject,
): NewHolder {
  const name = textClaim(claims, signer.enrollNameClaimsSelector)
  if (name === null) throw untaken('the token lacks the claim of the identity')
  return {
    signer,
    externalId: claim,
    name: name.slice(0, fieldLimits.nameCharactersMax - NUMBER_CHARACTERS),
    roleAttributes: attributesIn(claims, signer.enrollAttributeClaimsSelector),
  }
}

function attributesIn(claims: JsonObject, selector: string): readonly string[] {
  if (selector === '') return []
  const value = claimAt(claims, selector)
  if (value === undefined || value === null) return []
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  const isFit = list.length <= fieldLimits.attributesMax && list.every(isAttribute)
  if (!isFit) throw untaken('role attributes in the token are not strings, too long, or too many')
  return [...new Set(list as readonly string[])].sort()
}

function isAttribute(value: unknown): boolean {
  return (
    typeof value === 'string' && value !== '' && value.length <= fieldLimits.attributeCharactersMax
  )
}

function untaken(detail: string): Problem {
  return new Problem('INVALID_ENROLLMENT_JWT', { detail })
}
