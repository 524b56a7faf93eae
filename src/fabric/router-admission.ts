import type { TLSSocket } from 'node:tls'

/** A connected router whose certificate matches its record. */
export interface AdmittedRouter {
  readonly id: string
  readonly name: string
  /** True if clients may connect to this router. */
  readonly isEdge: boolean
  /**
   * Certificate in the router's record when it was admitted, PEM. The controller repeatedly
   * compares it with the record, which may change.
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

/** Decides which routers may connect. */
export interface RouterAdmitter {
  /**
   * Decides by the certificates of the TLS socket. TLS has already verified that the router has the
   * private key of its leaf certificate.
   */
  admit(socket: TLSSocket): RouterAdmission
  /** Why an admitted router must be disconnected now; null if it may stay connected. */
  revoked(router: AdmittedRouter): RouterRevocation | null
}
