import { CertificateError, type CertificateFault } from '../pki/certificate.ts'
import {
  type CertificateOrder,
  issueCertificates,
  type IssuingSettings,
} from '../pki/authority/certificate-order.ts'
import type { CertificateSigner } from '../pki/authority/enrolled-certificate.ts'
import type { IssuedCertificate } from '../ports/certificate-issuer.ts'

/** Goes to the thread and nowhere else. */
export interface AuthorityKey {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/** Message to the thread. */
export interface CertificateCommand {
  readonly order: CertificateOrder
  readonly nowMs: number
  readonly authority: AuthorityKey
}

export type CertificateResult =
  | {
      readonly type: 'issued'
      readonly certificates: readonly [IssuedCertificate, ...IssuedCertificate[]]
    }
  | { readonly type: 'refused'; readonly fault: CertificateFault; readonly reason: string }

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
