import type { TLSSocket } from 'node:tls'

/** A router whose certificate is the one of its record. */
export interface AdmittedRouter {
  readonly id: string
  readonly name: string
  /** Clients connect to it. */
  readonly isEdge: boolean
  /**
   * PEM of its record: whether this is still the certificate of the record is asked again and
   * again.
   */
  readonly certPem: string
}

export type RouterAdmission =
  | { readonly ok: true; readonly router: AdmittedRouter }
  /** For the log of the router and that of the controller; nothing in it is secret. */
  | { readonly ok: false; readonly reason: string }

/** Admits routers that connect. */
export interface RouterAdmitter {
  /**
   * Admits by the certificates that the socket has shown, with proof of the key of the first one.
   */
  admit(socket: TLSSocket): RouterAdmission
  /** Why a router that was admitted is to go; null: it is not. */
  revoked(router: AdmittedRouter): string | null
}
