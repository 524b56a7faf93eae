import type { TLSSocket } from 'node:tls'

/** A router whose certificate matches its record. */
export interface AdmittedRouter {
  readonly id: string
  readonly name: string
  /** True: clients may connect to it. */
  readonly isEdge: boolean
  /**
   * Certificate of its record, PEM. It is compared with the record repeatedly, because the record
   * may change.
   */
  readonly certPem: string
}

export type RouterAdmission =
  | { readonly ok: true; readonly router: AdmittedRouter }
  /** The reason is for the router and for the controller's log; it contains no secret. */
  | { readonly ok: false; readonly reason: string }

/** Admits connecting routers. */
export interface RouterAdmitter {
  /**
   * Admits a router by the certificates of the TLS socket; TLS has proved possession of the leaf's
   * key.
   */
  admit(socket: TLSSocket): RouterAdmission
  /** Why an admitted router must be disconnected; null if it may stay. */
  revoked(router: AdmittedRouter): string | null
}
