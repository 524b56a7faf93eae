import type { InspectedCertificate } from '../../pki/authority/inspection.ts'
import type { Actor } from '../../ports/actor.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import type { certificateRequest } from './pki-schema.ts'

/** Certificate of another authority, for the names in it. */
export interface ServerCertificateInForce {
  readonly path: string
  /** null: none of these files has been accepted yet. */
  readonly certificate: InspectedCertificate | null
  /** Why the files that lie there now are not in force; null when they are. */
  readonly refused: string | null
}

/** Certificates that a controller has in force. */
export interface CertificatesInForce {
  /** The controller's leaf first, then the CAs above it. */
  readonly certificates: readonly InspectedCertificate[]
  /** The issuing authority in force, PEM, without its key; null when it is not known. */
  readonly issuingPem: string | null
  /** False: the certificate was issued elsewhere and must be renewed there. */
  readonly isRenewedHere: boolean
  /** Time from which on it renews itself; UTC ms, null for a leaf from elsewhere. */
  readonly renewAtMs: number | null
  /** Why the files that lie there now are not in force; null when they are. */
  readonly refused: string | null
  readonly alarm: string | null
  readonly serverCertificates: readonly ServerCertificateInForce[]
}

/** A certificate for a client or server outside of the cluster. */
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
  /** Signs the next leaf of this controller now, over the same key. */
  renew(by: Actor): Promise<CertificatesInForce>
  /** Reads certificate, key and CA files again now. */
  reload(by: Actor): Promise<CertificatesInForce>
  /**
   * Makes another certificate that of the issuing authority of the whole cluster.
   * @param privateKeyPem null: it is for the key that the authority has now.
   */
  installIssuing(
    given: { readonly certificatePem: string; readonly privateKeyPem: string | null },
    by: Actor,
  ): Promise<{ readonly notAfterMs: number; readonly formerNotAfterMs: number }>
  issue(request: IssueRequest, by: Actor): Promise<IssuedCertificate>
  /** For a member whose certificate expired while it was away. */
  renewMember(
    certificatePem: string,
    by: Actor,
  ): Promise<IssuedCertificate & { readonly id: string }>
}
