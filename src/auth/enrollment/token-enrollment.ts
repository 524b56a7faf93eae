import { create, toBinary } from '@bufbuild/protobuf'
import { retryWhenRecordsChange } from '../../lib/retry-when-records-change.ts'
import { CommandKind, TokenEnrollSchema } from '../../../proto/gen/command_pb.ts'
import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import { fieldLimits } from '../../entities/fields.ts'
import { tokenEnrollmentRefusal } from '../../fsm/enrollment/token-enrollment.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import type { RefusalCause } from '../../lib/refusal-reason.ts'
import { newShortId } from '../../lib/random.ts'
import { selectClaim, selectTextClaim } from '../tokens/claims.ts'
import type { TokenVerifier, VerifiedToken } from '../tokens/token-verifier.ts'
import { type EnrollRequest, REQUEST_ID_NOT_STORED } from './enroll-request.ts'
import type { CommandWriter, Idempotency } from '../../ports/writer.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import { toNetworkCommandCertificate } from '../certificates/trusted-authorities.ts'
import { actorForPrincipal, writeOriginForActor } from '../principal/principal.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { CertificateIssuer } from '../../ports/certificate-issuer.ts'

/** Number of characters reserved for a number that makes the name unique. */
const NUMBER_CHARACTERS = 6

interface NewHolder {
  readonly signer: ExternalJwtSigner
  readonly externalId: string
  readonly name: string
  readonly roleAttributes: readonly string[]
}

interface TokenEnrollmentDeps {
  readonly state: StateView
  readonly reads: LatestReads
  readonly issuer: CertificateIssuer
  readonly writer: CommandWriter
  readonly externalTokens: TokenVerifier
  readonly limits: { readonly judgementsMax: number }
}

/**
 * Creates an identity for a client that presents an external JWT, if the signer's record allows
 * enrollment. With a certificate request, the identity gets a certificate for the key of the
 * request; without one, the identity logs in with JWTs of the signer.
 */
export class TokenEnrollment {
  readonly #deps: TokenEnrollmentDeps

  constructor(deps: TokenEnrollmentDeps) {
    this.#deps = deps
  }

  /**
   * @param signerId the signer that must have issued the token; undefined: any.
   * @returns the certificate; null if the token is the credential.
   */
  async enroll(
    request: EnrollRequest,
    csr: string | undefined,
    signerId: string | undefined,
  ): Promise<string | null> {
    const { reads, limits } = this.#deps
    if (request.shown.bearers().length === 0) throw untaken('no bearer token in the request')
    await reads.reachLatest()
    return retryWhenRecordsChange(request.write, limits, async () => {
      const holder = await this.#holderOf(request.shown, signerId)
      this.#checkAllowed(holder, csr !== undefined)
      return csr === undefined
        ? await this.#enrollToToken(request, holder)
        : await this.#enrollToCertificate(request, holder, csr)
    })
  }

  async #holderOf(
    { bearers, address }: CallerCredentials,
    signerId: string | undefined,
  ): Promise<NewHolder> {
    const { state } = this.#deps
    let refusal: RefusalCause | undefined
    for (const text of bearers()) {
      const found = await this.#deps.externalTokens.verifyClaims(address, text)
      if ('error' in found) {
        refusal = found.cause
        continue
      }
      const { verified, claims } = found
      // @guard enrollment-by-any-token--named
      if (signerId !== undefined && verified.signerId !== signerId) continue
      const signer = state.get('externalJwtSigner', verified.signerId)
      if (signer !== undefined) return newHolder(signer, verified, claims)
    }
    throw untaken('the token is not valid', refusal)
  }

  /** Makes the checks in the same order as OpenZiti; the state machine repeats them. */
  #checkAllowed({ signer, externalId }: NewHolder, isToCertificate: boolean): void {
    const { state } = this.#deps
    if (state.find('identity', 'externalId', externalId) !== undefined) {
      throw new Problem('ENROLLMENT_IDENTITY_ALREADY_ENROLLED')
    }
    const policy = state.get('authPolicy', signer.enrollAuthPolicyId)
    const detail = tokenEnrollmentRefusal(signer, policy, isToCertificate)
    if (detail !== null) throw new Problem('INVALID_ENROLLMENT_NOT_ALLOWED', { detail })
  }

  async #enrollToToken(request: EnrollRequest, holder: NewHolder): Promise<null> {
    await this.#write(request, holder, newShortId(), {})
    return null
  }

  async #enrollToCertificate(
    request: EnrollRequest,
    holder: NewHolder,
    requestPem: string,
  ): Promise<string> {
    const identityId = newShortId()
    const issued = await this.#deps.issuer.identity(
      { identityId, requestPem },
      request.shown.address,
    )
    const certificate = toNetworkCommandCertificate(issued)
    const credential = { authenticatorId: newShortId(), certificate }
    await this.#write(request, holder, identityId, credential, REQUEST_ID_NOT_STORED)
    return issued.chainPem
  }

  /** Creates the identity with its credential in one log entry. */
  async #write(
    request: EnrollRequest,
    { signer, ...holder }: NewHolder,
    identityId: string,
    credential: object,
    idempotency?: Idempotency,
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
    const judgedOn = [{ entity: 'externalJwtSigner', id: signerId, revision } as const]
    const { address } = request.shown
    const shown = { signerId }
    const principal = { kind: 'enrolling', shown, method: 'token', address } as const
    const origin = writeOriginForActor(request.write, actorForPrincipal(principal), idempotency)
    await this.#deps.writer.write(origin, {
      kind: CommandKind.TOKEN_ENROLL,
      payload,
      judgedOn,
    })
  }
}

/**
 * @throws {Problem} INVALID_ENROLLMENT_JWT if the claim of the name is missing, or the role
 * attributes in the token are invalid.
 */
function newHolder(
  signer: ExternalJwtSigner,
  { claim }: VerifiedToken,
  claims: JsonObject,
): NewHolder {
  const name = selectTextClaim(claims, signer.enrollNameClaimsSelector)
  if (name === null) {
    const { id: signerId, enrollNameClaimsSelector: claim } = signer
    const refusal = { reason: 'TOKEN_CLAIM_MISSING', signerId, claim } as const
    throw untaken('the token lacks the claim of the name of the identity', refusal)
  }
  return {
    signer,
    externalId: claim,
    name: name.slice(0, fieldLimits.nameCharactersMax - NUMBER_CHARACTERS),
    roleAttributes: attributesIn(claims, signer.enrollAttributeClaimsSelector),
  }
}

function attributesIn(claims: JsonObject, selector: string): readonly string[] {
  if (selector === '') return []
  const value = selectClaim(claims, selector)
  if (value === undefined || value === null) return []
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  const fault = attributesFault(list)
  if (fault !== null) throw untaken(`role attributes in the token ${fault}`)
  return [...new Set(list as readonly string[])].sort()
}

function attributesFault(list: readonly unknown[]): string | null {
  const { attributesMax, attributeCharactersMax } = fieldLimits
  if (list.length > attributesMax) return `are more than ${attributesMax}`
  for (const value of list) {
    if (typeof value !== 'string') return 'must be strings'
    if (value === '') return 'must not be empty'
    if (value.startsWith('#') || value.startsWith('@')) return 'must not begin with # or @'
    if (value.length > attributeCharactersMax) {
      return `must have at most ${attributeCharactersMax} characters`
    }
  }
  return null
}

function untaken(detail: string, refusal?: RefusalCause): Problem {
  return new Problem('INVALID_ENROLLMENT_JWT', {
    detail,
    ...(refusal === undefined ? {} : { refusal }),
  })
}
