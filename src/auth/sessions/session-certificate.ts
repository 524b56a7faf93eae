import { create, toBinary } from '@bufbuild/protobuf'

import { SessionCertificateCreateSchema } from '../../../proto/gen/command_pb.ts'
import { newShortId } from '../../lib/random.ts'
import type {
  CertificateIssuer,
  SessionCertificateRequest,
} from '../../ports/certificate-issuer.ts'
import { toNetworkCommandCertificate } from '../certificates/trusted-authorities.ts'

/**
 * A certificate issued for a session. The certificate becomes valid for the session when a command
 * with this payload is applied.
 */
export interface IssuedSessionCertificate {
  readonly id: string
  readonly apiSessionId: string
  /** PEM, leaf first, then the intermediates. */
  readonly chainPem: string
  /** Encoded SessionCertificateCreate message, the payload of the command. */
  readonly payload: Uint8Array
}

/** @throws {Problem} in the same cases as `session` of {@link CertificateIssuer}. */
export async function issueSessionCertificate(
  issuer: CertificateIssuer,
  order: Omit<SessionCertificateRequest, 'certificateId'>,
  /**
   * True: earlier certificates of the session become invalid when the new certificate becomes
   * valid.
   */
  replacesOthers = false,
): Promise<IssuedSessionCertificate> {
  const id = newShortId()
  const { identityId, apiSessionId } = order
  const issued = await issuer.session({ ...order, certificateId: id }, identityId)
  const message = create(SessionCertificateCreateSchema, {
    id,
    apiSessionId,
    certificate: toNetworkCommandCertificate(issued),
    subject: issued.subject,
    validFromMs: BigInt(issued.notBeforeMs),
    validToMs: BigInt(issued.notAfterMs),
    replacesOthers,
  })
  const payload = toBinary(SessionCertificateCreateSchema, message)
  return { id, apiSessionId, chainPem: issued.chainPem, payload }
}
