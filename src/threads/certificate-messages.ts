import { CertificateError, type CertificateFault } from '../pki/certificate.ts'
import {
  type CertificateOrder,
  issueCertificates,
  type IssuingSettings,
} from '../pki/authority/certificate-order.ts'
import type { CertificateSigner } from '../pki/authority/enrolled-certificate.ts'
import type { IssuedCertificate } from '../ports/certificate-issuer.ts'

/**
 * To the thread. Orders are carried out in their order, by the authority that came last before
 * them.
 */
export type CertificateCommand =
  | {
      readonly type: 'authority'
      readonly certificatePem: string
      /** Goes to the thread and nowhere else. */
      readonly privateKeyPem: string
    }
  | { readonly type: 'issue'; readonly order: CertificateOrder; readonly nowMs: number }

export type CertificateResult =
  | {
      readonly type: 'issued'
      readonly certificates: readonly [IssuedCertificate, ...IssuedCertificate[]]
    }
  | { readonly type: 'refused'; readonly fault: CertificateFault; readonly reason: string }

export type CertificateReport = { readonly type: 'ready' } | CertificateResult

/** A refusal as a value, as errors lose their kind between threads. */
export function carryOut(
  order: CertificateOrder,
  issuer: CertificateSigner,
  settings: IssuingSettings,
  nowMs: number,
): CertificateResult {
  try {
    return { type: 'issued', certificates: issueCertificates(order, issuer, settings, nowMs) }
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    return { type: 'refused', fault: error.fault, reason: error.message }
  }
}
