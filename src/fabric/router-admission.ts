import type { TLSSocket } from 'node:tls'

/** A connecting router whose certificate matches the certificate in the router's record. */
export interface AdmittedRouter {
  readonly id: string
  readonly name: string
  /** True if clients may connect to this router. */
  readonly isEdge: boolean
  /**
   * Certificate in the router's record at the time of the admission, PEM. The controller repeatedly
   * compares this certificate with the record, because the record may change.
   */
  readonly certPem: string
}

export type RouterAdmission =
  | { readonly ok: true; readonly router: AdmittedRouter }
  /** `reason` is sent to the router and logged by the controller; it contains no secret. */
  | { readonly ok: false; readonly reason: string }

/** Why an admitted router must be disconnected. */
export interface RouterRevocation {
  /** Sent to the router and logged by the controller; contains no secret. */
  readonly reason: string
  /**
   * Whether other routers must also close their links to the router. False if only the certificate
   * was renewed: the router reconnects with the new certificate, and its circuits continue.
   */
  readonly endsLinks: boolean
}

/** Admits connecting routers. */
export interface RouterAdmitter {
  /**
   * Admits a router by the certificates of the TLS socket. TLS has already verified that the router
   * has the private key of its leaf certificate.
   */
  admit(socket: TLSSocket): RouterAdmission
  /** Why an admitted router must be disconnected; null if it may stay connected. */
  revoked(router: AdmittedRouter): RouterRevocation | null
}
