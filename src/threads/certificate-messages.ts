import { CertificateError, type CertificateFault } from '../pki/certificate.ts'
import {
  type CertificateOrder,
  issueCertificates,
  type IssuingSettings,
} from '../pki/authority/certificate-order.ts'
import { type CertificateSigner, loadIssuer } from '../pki/authority/enrolled-certificate.ts'
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

/** Carries out commands, one after the other, for the thread of certificates. */
export class CertificateCommands {
  readonly #settings: IssuingSettings
  #loaded: { readonly authority: AuthorityKey; readonly issuer: CertificateSigner } | null = null

  constructor(settings: IssuingSettings) {
    this.#settings = settings
  }

  /** A refusal is returned as a value, as errors lose their kind between threads. */
  carryOut({ order, nowMs, authority }: CertificateCommand): CertificateResult {
    const issuer = this.#issuerOf(authority)
    try {
      const certificates = issueCertificates(order, issuer, this.#settings, nowMs)
      return { type: 'issued', certificates }
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error
      return { type: 'refused', fault: error.fault, reason: error.message }
    }
  }

  /** The authority is loaded again only when it was rotated, as this checks a key. */
  #issuerOf(authority: AuthorityKey): CertificateSigner {
    const isLoaded =
      this.#loaded?.authority.certificatePem === authority.certificatePem &&
      this.#loaded.authority.privateKeyPem === authority.privateKeyPem
    if (this.#loaded === null || !isLoaded) {
      this.#loaded = { authority, issuer: loadIssuer(authority) }
    }
    return this.#loaded.issuer
  }
}
