import { CertificateError, parseCertificates } from '../certificate.ts'
import {
  type CertificateSigner,
  certifyIdentity,
  certifyRouterClient,
  certifyRouterServer,
  certifySession,
  type EnrolledCertificate,
  type EnrolledCertificateInput,
  extendIdentityCertificate,
} from './enrolled-certificate.ts'
import { readEnrollmentRequest } from './enrollment-request.ts'
import type { RouterNaming } from './router-names.ts'

/** Order for certificates of one kind; requests and certificates are PEM texts. */
export type CertificateIssueOrder =
  | { readonly kind: 'identity'; readonly identityId: string; readonly requestPem: string }
  | {
      readonly kind: 'extension'
      readonly identityId: string
      readonly currentPem: string
      readonly requestPem: string
    }
  | {
      readonly kind: 'session'
      readonly identityId: string
      readonly apiSessionId: string
      readonly certificateId: string
      readonly requestPem: string
      readonly madeAt?: 'log-in'
    }
  | {
      readonly kind: 'router'
      readonly routerId: string
      readonly clientRequestPem: string
      readonly serverRequestPem: string
      readonly naming: RouterNaming
    }

export interface IssuingSettings {
  readonly trustDomain: string
  /**
   * Lifetime of certificates of identities and routers, and of session certificates that are issued
   * at log-in.
   */
  readonly enrolledCertificateMs: number
  readonly sessionCertificateMs: number
}

/**
 * Validates the requests of an order and signs the certificates. Synchronous and stateless.
 * @returns one certificate; for a router the client certificate, then the server certificate.
 * @throws {CertificateError} `expired` when the issuer's certificate has expired; otherwise an
 * error of the request, in one sentence that may be sent to the requester.
 */
export function issueCertificates(
  order: CertificateIssueOrder,
  issuer: CertificateSigner,
  settings: IssuingSettings,
  nowMs: number,
): readonly [EnrolledCertificate, ...EnrolledCertificate[]] {
  const { trustDomain, enrolledCertificateMs, sessionCertificateMs } = settings
  const enroll = (
    requestPem: string,
    lifetimeMs = enrolledCertificateMs,
  ): EnrolledCertificateInput => {
    return { issuer, trustDomain, request: readEnrollmentRequest(requestPem), nowMs, lifetimeMs }
  }
  switch (order.kind) {
    case 'identity':
      return [certifyIdentity(enroll(order.requestPem), order.identityId)]
    case 'extension': {
      const [current] = parseCertificates(order.currentPem)
      return [extendIdentityCertificate(enroll(order.requestPem), order.identityId, current)]
    }
    case 'session': {
      const lifetimeMs = order.madeAt === 'log-in' ? enrolledCertificateMs : sessionCertificateMs
      return [certifySession(enroll(order.requestPem, lifetimeMs), order)]
    }
    case 'router': {
      const { routerId, naming } = order
      const server = ofServer(() =>
        certifyRouterServer(enroll(order.serverRequestPem), routerId, naming),
      )
      return [certifyRouterClient(enroll(order.clientRequestPem), routerId), server]
    }
  }
}

/** Adds to an error that it is about the server request, because a router sends two requests. */
function ofServer<C>(certify: () => C): C {
  try {
    return certify()
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw new CertificateError(error.fault, `server request: ${error.message}`, error)
  }
}
