import { CertificateError, type CertificateFault } from '../pki/certificate.ts'
import {
  type CertificateIssueOrder,
  issueCertificates,
  type IssuingSettings,
} from '../pki/authority/issue-certificates.ts'
import {
  type CertificateSigner,
  parseCertificateSigner,
} from '../pki/authority/enrolled-certificate.ts'
import type { IssuedCertificate } from '../ports/certificate-issuer.ts'

/** A certificate authority with its key; part of each command to the certificate thread. */
export interface AuthorityKey {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/** Command that the main thread sends to the certificate thread. */
export interface CertificateCommand {
  readonly order: CertificateIssueOrder
  readonly nowMs: number
  readonly authority: AuthorityKey
}

export type CertificateResult =
  | {
      readonly type: 'issued'
      readonly certificates: readonly [IssuedCertificate, ...IssuedCertificate[]]
    }
  | { readonly type: 'refused'; readonly fault: CertificateFault; readonly reason: string }

/** Executes commands in the certificate thread, one at a time. */
export class CertificateCommandExecutor {
  readonly #settings: IssuingSettings
  #loaded: { readonly authority: AuthorityKey; readonly issuer: CertificateSigner } | null = null

  constructor(settings: IssuingSettings) {
    this.#settings = settings
  }

  /**
   * A refusal is returned as a value, because an error loses its class when it is sent between
   * threads.
   */
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

  /** Loads the authority only when it has changed, because loading also checks its key. */
  #issuerOf(authority: AuthorityKey): CertificateSigner {
    const isLoaded =
      this.#loaded?.authority.certificatePem === authority.certificatePem &&
      this.#loaded.authority.privateKeyPem === authority.privateKeyPem
    if (this.#loaded === null || !isLoaded) {
      this.#loaded = { authority, issuer: parseCertificateSigner(authority) }
    }
    return this.#loaded.issuer
  }
}
