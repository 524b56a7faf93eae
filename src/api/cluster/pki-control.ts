import type { InspectedCertificate } from '../../pki/authority/inspection.ts'
import type { Actor } from '../../ports/actor.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import type { certificateRequestSchema } from './pki-schema.ts'

/**
 * A configured server certificate from another authority. Once the controller has accepted its
 * files, it presents the certificate to clients that request one of the names in it, except names
 * that the controller's own certificate also contains.
 */
export interface ServerCertificateStatus {
  readonly path: string
  /** The certificate in use; null if the controller has never accepted the files. */
  readonly certificate: InspectedCertificate | null
  /** Reason why the controller does not use the current files; null if it uses them. */
  readonly refused: string | null
}

/**
 * Certificates that a controller currently uses, and the status of its configured server
 * certificates.
 */
export interface ActiveCertificates {
  /** The controller's leaf certificate first, then its issuing CAs. */
  readonly certificates: readonly InspectedCertificate[]
  /** PEM certificate of the current issuing authority; null if this controller does not know it. */
  readonly issuingPem: string | null
  /**
   * False: another authority issued the certificate, and the operator must renew the certificate
   * with that authority.
   */
  readonly isRenewedHere: boolean
  /** Time of the automatic renewal, UTC ms; null for a leaf that another authority issued. */
  readonly renewAtMs: number | null
  /** Reason why the controller does not use the current files; null if it uses them. */
  readonly refused: string | null
  readonly alarm: string | null
  readonly serverCertificates: readonly ServerCertificateStatus[]
}

/** Requests a certificate for a client or server outside of the cluster. */
export type ExternalCertificateRequest = SchemaValue<typeof certificateRequestSchema.schema>

export interface IssuedExternalCertificate {
  readonly certificatePem: string
  readonly notAfterMs: number
}

/**
 * Maximum days for a certificate of an external program: the longest lifetime that browsers accept
 * from public authorities.
 */
export const ISSUED_CERTIFICATE_DAYS_MAX = 397

/**
 * Manages the certificates of this controller, and issues certificates of the cluster. Methods
 * throw {Problem}: CERTIFICATE_REFUSED with the reason, COULD_NOT_VALIDATE with the invalid field.
 * The audit log records each change with its actor.
 */
export interface PkiControl {
  view(): ActiveCertificates
  /** Issues a new leaf for this controller immediately, with the same key. */
  renew(by: Actor): Promise<ActiveCertificates>
  /**
   * Reads the files of the controller's own certificate and of all server certificates again, and
   * uses the valid ones, even if it throws because of others.
   */
  reload(by: Actor): Promise<ActiveCertificates>
  /**
   * Replaces the certificate of the cluster's issuing authority and, if one is given, its key.
   * @param privateKeyPem null if the certificate is for the authority's current key.
   */
  installIssuing(
    given: { readonly certificatePem: string; readonly privateKeyPem: string | null },
    by: Actor,
  ): Promise<{ readonly notAfterMs: number; readonly formerNotAfterMs: number }>
  issue(request: ExternalCertificateRequest, by: Actor): Promise<IssuedExternalCertificate>
  /**
   * Issues a certificate for a member that cannot request one itself, for example because the old
   * certificate expired while the member was down.
   * @param certificatePem the member's old certificate.
   */
  renewMember(
    certificatePem: string,
    by: Actor,
  ): Promise<IssuedExternalCertificate & { readonly id: string }>
}
