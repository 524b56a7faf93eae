import type { InspectedCertificate } from '../../pki/authority/inspection.ts'
import type { Actor } from '../../ports/actor.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import type { certificateRequestSchema } from './pki-schema.ts'

/**
 * Server certificate from another authority. The controller presents it to clients that request one
 * of the names in the certificate.
 */
export interface ActiveServerCertificate {
  readonly path: string
  /** null: no version of these files has been accepted yet. */
  readonly certificate: InspectedCertificate | null
  /** Why the current files are not in use; null when they are. */
  readonly refused: string | null
}

/** Certificates that a controller has in force. */
export interface ActiveCertificates {
  /** The controller's leaf certificate first, then its issuing CAs. */
  readonly certificates: readonly InspectedCertificate[]
  /** PEM certificate of the issuing authority in force; null when it is not known. */
  readonly issuingPem: string | null
  /**
   * False: another authority issued the certificate, and the operator must renew the certificate
   * with that authority.
   */
  readonly isRenewedHere: boolean
  /** Time of the automatic renewal, UTC ms; null for a leaf that another authority issued. */
  readonly renewAtMs: number | null
  /** Why the current files are not in use; null when they are. */
  readonly refused: string | null
  readonly alarm: string | null
  readonly serverCertificates: readonly ActiveServerCertificate[]
}

/** Requests a certificate for a client or server outside of the cluster. */
export type ExternalCertificateRequest = SchemaValue<typeof certificateRequestSchema.schema>

export interface IssuedCertificate {
  readonly certificatePem: string
  readonly notAfterMs: number
}

/**
 * Maximum lifetime of a certificate for an external program, because browsers refuse longer ones.
 */
export const ISSUED_CERTIFICATE_DAYS_MAX = 397

/**
 * The certificates of this controller, and those that the cluster issues. Methods throw {Problem}:
 * CERTIFICATE_REFUSED with the reason, COULD_NOT_VALIDATE with the field. The audit log records
 * each change with its actor.
 */
export interface PkiControl {
  view(): ActiveCertificates
  /** Signs a new leaf for this controller now, with the same key. */
  renew(by: Actor): Promise<ActiveCertificates>
  /** Reads certificate, key and CA files again. */
  reload(by: Actor): Promise<ActiveCertificates>
  /**
   * Replaces the certificate of the cluster's issuing authority.
   * @param privateKeyPem null: the certificate is for the current key of the authority.
   */
  installIssuing(
    given: { readonly certificatePem: string; readonly privateKeyPem: string | null },
    by: Actor,
  ): Promise<{ readonly notAfterMs: number; readonly formerNotAfterMs: number }>
  issue(request: ExternalCertificateRequest, by: Actor): Promise<IssuedCertificate>
  /** Issues a certificate for a member whose certificate expired while the member was down. */
  renewMember(
    certificatePem: string,
    by: Actor,
  ): Promise<IssuedCertificate & { readonly id: string }>
}
