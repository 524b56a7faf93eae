import type { PeerChain } from '../../pki/verify/client-chain.ts'
import type { Actor } from '../../ports/actor.ts'

/** Everything that a connection and a request show of their sender; it makes a principal. */
export interface CallerCredentials {
  /** Address of the peer, without its port. */
  readonly address: string
  /** Source of that address, as sources share room. */
  readonly source: string
  /** Undefined without one; an empty one is refused as a forged one is. */
  readonly sessionToken: string | undefined
  /** The certificates that the client showed in the handshake; null: none. */
  readonly peerChain: () => PeerChain | null
  /** Bearer tokens, up to the number that is read. */
  readonly bearers: () => readonly string[]
  /** The user of the host, at the admin socket; null at every other listener. */
  readonly hostUser: (() => Actor) | null
}
