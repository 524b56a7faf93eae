import type { InspectedCertificate } from '../../pki/authority/inspection.ts'
import type { Actor } from '../../ports/actor.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import type { certificateRequest } from './pki-schema.ts'

/** Server certificate of another authority, used for the names that it contains. */
export interface ServerCertificateInForce {
  readonly path: string
  /** null: none of these files has been accepted yet. */
  readonly certificate: InspectedCertificate | null
  /** Why the current files are not in use; null when they are. */
  readonly refused: string | null
}

/** Certificates that a controller has in force. */
export interface CertificatesInForce {
  /** The controller's leaf first, then the CAs above it. */
  readonly certificates: readonly InspectedCertificate[]
  /** The issuing authority in force, PEM, without its key; null when it is not known. */
  readonly issuingPem: string | null
  /** False: another authority issued the certificate and must renew it. */
  readonly isRenewedHere: boolean
  /** Time of the automatic renewal, UTC ms; null for a leaf of another authority. */
  readonly renewAtMs: number | null
  /** Why the current files are not in use; null when they are. */
  readonly refused: string | null
  readonly alarm: string | null
  readonly serverCertificates: readonly ServerCertificateInForce[]
}

/** Request for a certificate of a client or server outside of the cluster. */
export type IssueRequest = SchemaValue<typeof certificateRequest.schema>

export interface IssuedCertificate {
  readonly certificatePem: string
  readonly notAfterMs: number
}

/**
 * Maximum lifetime of a certificate for an external program, because browsers refuse longer ones.
 */
export const ISSUED_DAYS_MAX = 397

/**
 * The certificates of this controller, and those that the cluster issues. Methods throw {Problem}:
 * CERTIFICATE_REFUSED with a sentence, COULD_NOT_VALIDATE with the field. The audit log records
 * each change with its actor.
 */
export interface PkiControl {
  view(): CertificatesInForce
  /** Signs a new leaf for this controller now, with the same key. */
  renew(by: Actor): Promise<CertificatesInForce>
  /** Reads certificate, key and CA files again. */
  reload(by: Actor): Promise<CertificatesInForce>
  /**
   * Replaces the certificate of the cluster's issuing authority.
   * @param privateKeyPem null: the certificate is for the authority's current key.
   */
  installIssuing(
    given: { readonly certificatePem: string; readonly privateKeyPem: string | null },
    by: Actor,
  ): Promise<{ readonly notAfterMs: number; readonly formerNotAfterMs: number }>
  issue(request: IssueRequest, by: Actor): Promise<IssuedCertificate>
  /** For a member whose certificate expired while the member was down. */
  renewMember(
    certificatePem: string,
    by: Actor,
  ): Promise<IssuedCertificate & { readonly id: string }>
}
