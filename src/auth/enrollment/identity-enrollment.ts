import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, type Enroll, EnrollSchema } from '../../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Enrollment } from '../../entities/kinds/enrollment.ts'
import { identityAuthPolicy } from '../../fsm/apply/authentication.ts'
import { enrollmentTokenDigest } from '../../fsm/enrollment/enrollment.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import { verifyChainToAnchors } from '../certificates/client-certificate.ts'
import { passwordFault } from '../factors/password-rules.ts'
import {
  parseCaCertificate,
  toNetworkCommandCertificate,
  toThirdPartyCommandCertificate,
} from '../certificates/trusted-authorities.ts'
import { type EnrollRequest, REQUEST_ID_NOT_STORED } from './enroll-request.ts'
import type { CommandWriter, Idempotency } from '../../ports/writer.ts'
import {
  isUnknownTokenError,
  findOutstandingEnrollment,
  tokenAlreadyUsedProblem,
} from './enrollment-tokens.ts'
import { actorForPrincipal, writeOriginForActor } from '../principal/principal.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Clock } from '../../lib/clock.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { CertificateIssuer } from '../../ports/certificate-issuer.ts'
import type { NetworkAuthorities } from '../certificates/network-authorities.ts'
import type { PasswordVerifier } from '../factors/password-verifier.ts'

type Credential = Enroll['credential']

interface IdentityEnrollmentDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly reads: LatestReads
  readonly issuer: CertificateIssuer
  readonly authorities: NetworkAuthorities
  readonly writer: CommandWriter
  readonly passwords: PasswordVerifier
}

/**
 * Enrolls identities with a one-time token: with a new certificate, with an existing one, or with a
 * password.
 */
export class IdentityEnrollment {
  readonly #deps: IdentityEnrollmentDeps

  constructor(deps: IdentityEnrollmentDeps) {
    this.#deps = deps
  }

  /**
   * Issues a certificate for the key of the request. A repeated request with the same token and key
   * gets the same certificate.
   */
  async ott(
    request: EnrollRequest,
    token: string | undefined,
    csr: string | undefined,
  ): Promise<string> {
    try {
      return await this.#ott(request, token, csr)
    } catch (error) {
      if (!isUnknownTokenError(error)) throw error
      return await this.#ottAgain(request, token ?? '', csr)
    }
  }

  async #ott(
    request: EnrollRequest,
    token: string | undefined,
    csr: string | undefined,
  ): Promise<string> {
    const enrollment = await findOutstandingEnrollment(this.#deps, token, ['ott'])
    const { identityId } = enrollment
    const requestPem = requestIn(csr)
    const issued = await this.#deps.issuer.identity(
      { identityId, requestPem },
      request.shown.address,
    )
    const value = toNetworkCommandCertificate(issued)
    const credential = { case: 'certificate', value } as Credential
    await this.#enroll(request, enrollment, credential, REQUEST_ID_NOT_STORED)
    return issued.chainPem
  }

  async #ottAgain(request: EnrollRequest, token: string, csr: string | undefined): Promise<string> {
    const { state, issuer } = this.#deps
    const known = this.#enrolledBy(token)
    if (known === undefined) throw new Problem('INVALID_ENROLLMENT_TOKEN')
    const { certPem, publicKeyPrint, identityId } = known
    if (certPem === null || csr === undefined || state.get('identity', identityId) === undefined) {
      throw tokenAlreadyUsedProblem()
    }
    const asked = await issuer.identity({ identityId, requestPem: csr }, request.shown.address)
    // @guard token-used-twice--key
    if (asked.publicKeyPrint !== publicKeyPrint) throw tokenAlreadyUsedProblem()
    return certPem
  }

  /**
   * Stores the certificate of the connection as the identity's credential. The CA that the
   * enrollment names must have issued it.
   */
  async ottca(request: EnrollRequest, token: string | undefined): Promise<void> {
    const { state } = this.#deps
    let enrollment: Enrollment
    try {
      enrollment = await findOutstandingEnrollment(this.#deps, token, ['ottca'])
    } catch (error) {
      if (isUnknownTokenError(error)) return this.#requireOttcaUsed(request, token ?? '')
      throw error
    }
    const ca = state.get('ca', enrollment.caId)
    if (ca?.isVerified !== true || !ca.isOttCaEnrollmentEnabled) {
      throw new Problem('ENROLLMENT_CA_NOT_VALID')
    }
    const chain = request.shown.peerChain()
    if (chain === null) {
      throw new Problem('CERTIFICATE_FAILED_VALIDATION', {
        detail: 'no client certificate on the connection',
      })
    }
    const question = { chain, requiresClientAuth: true, leafTime: 'enforced' } as const
    const found = verifyChainToAnchors(this.#deps, [parseCaCertificate(ca)], question)
    if (!found.ok) throw new Problem('CERTIFICATE_FAILED_VALIDATION', { detail: found.reason })
    const value = toThirdPartyCommandCertificate(chain[0], ca.id)
    await this.#enroll(request, enrollment, { case: 'certificate', value } as Credential)
  }

  /** @throws {Problem} unless the token was used with the certificate of this connection. */
  #requireOttcaUsed({ shown }: EnrollRequest, token: string): void {
    const known = this.#enrolledBy(token)
    if (known === undefined) throw new Problem('INVALID_ENROLLMENT_TOKEN')
    const leaf = shown.peerChain()?.[0]
    if (known.fingerprint === null || leaf?.sha1 !== known.fingerprint)
      throw tokenAlreadyUsedProblem()
  }

  /**
   * Enrolls with a password, for the user name of the enrollment; ignores any user name in the
   * body.
   */
  async updb(
    request: EnrollRequest,
    token: string | undefined,
    password: string | undefined,
  ): Promise<string> {
    const { state } = this.#deps
    let enrollment: Enrollment
    try {
      enrollment = await findOutstandingEnrollment(this.#deps, token, ['updb'])
    } catch (error) {
      if (isUnknownTokenError(error) && this.#enrolledBy(token ?? '') !== undefined)
        throw tokenAlreadyUsedProblem()
      throw error
    }
    if (password === undefined) throw fieldProblem('password', 'password is required')
    const identity = state.get('identity', enrollment.identityId)
    if (identity === undefined) throw new Problem('INVALID_ENROLLMENT_TOKEN')
    const reason = passwordFault(identityAuthPolicy(state, identity), password)
    if (reason !== null) throw fieldProblem('password', reason)
    const value = await this.#deps.passwords.hash(request.turn, password)
    // Stores no request id, because the record of the id would contain an unsalted hash of the
    // password.
    await this.#enroll(request, enrollment, { case: 'passwordHash', value }, REQUEST_ID_NOT_STORED)
    return enrollment.username ?? ''
  }

  #enrolledBy(token: string): Authenticator | undefined {
    if (token === '') return undefined
    const { state } = this.#deps
    return state.find('authenticator', 'enrolledBy', enrollmentTokenDigest(token))
  }

  /** Stores the credential and uses up the enrollment, in one log entry. */
  async #enroll(
    request: EnrollRequest,
    enrollment: Enrollment,
    credential: Credential,
    idempotency?: Idempotency,
  ): Promise<void> {
    const { id: enrollmentId, token, method } = enrollment
    const message = create(EnrollSchema, {
      enrollmentId,
      token,
      method,
      authenticatorId: newShortId(),
      credential,
    })
    const payload = toBinary(EnrollSchema, message)
    const { address } = request.shown
    const shown = { enrollmentId }
    const principal = { kind: 'enrolling', shown, method, address } as const
    const origin = writeOriginForActor(request.write, actorForPrincipal(principal), idempotency)
    await this.#deps.writer.write(origin, { kind: CommandKind.ENROLL, payload })
  }
}

/** @throws {Problem} COULD_NOT_PROCESS_CSR if there is no certificate request. */
function requestIn(csr: string | undefined): string {
  if (csr !== undefined && csr.trim() !== '') return csr
  throw new Problem('COULD_NOT_PROCESS_CSR', {
    detail: 'a certificate signing request in PEM is required',
  })
}
