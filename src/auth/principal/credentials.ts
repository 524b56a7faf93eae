import type { PresentedCertificates } from '../../pki/verify/client-chain.ts'
import type { Actor } from '../../ports/actor.ts'

/**
 * All credentials and addresses that a connection and a request present; they determine the
 * request's principal.
 */
export interface CallerCredentials {
  /** IP address of the client, without its port. */
  readonly address: string
  /** The source that rate limits count as one client: an IPv4 address, or a /64 network of IPv6. */
  readonly source: string
  /** Undefined without a token. An empty token is refused like a forged token. */
  readonly sessionToken: string | undefined
  /** The certificates that the client presented in the handshake; null if it presented none. */
  readonly peerChain: () => PresentedCertificates | null
  /** The request's bearer tokens, limited to a maximum number. */
  readonly bearers: () => readonly string[]
  /** The operating system user who connected to the admin socket; null at every other listener. */
  readonly hostUser: (() => Actor) | null
}
