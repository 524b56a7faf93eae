import type { PeerChain } from '../../pki/verify/client-chain.ts'
import type { Actor } from '../../ports/actor.ts'

/**
 * Everything that a connection and a request present about their sender, from which its principal
 * is determined.
 */
export interface CallerCredentials {
  /** Address of the peer, without its port. */
  readonly address: string
  /**
   * Name of the network to which this address belongs; limits apply to this network as a whole.
   */
  readonly source: string
  /** Undefined without a token. An empty token is refused like a forged token. */
  readonly sessionToken: string | undefined
  /** The certificates that the client presented in the handshake; null: none. */
  readonly peerChain: () => PeerChain | null
  /** Bearer tokens, up to the maximum that is read. */
  readonly bearers: () => readonly string[]
  /** The user of the host, at the admin socket; null at every other listener. */
  readonly hostUser: (() => Actor) | null
}
