import type { AdmittedClient } from '../../ports/router-clients.ts'
import type { PeerData } from '../../channel/messages/circuit-requests.ts'
import { peerDataKey } from '../../channel/messages/peer-data.ts'

/**
 * Keys of the host's peer data that the controller sends to the dialing client. The addresses of
 * the host and its target are not among them.
 */
const sentToDialer: ReadonlySet<number> = new Set<number>([
  peerDataKey.publicKey,
  peerDataKey.stickinessToken,
])

/** The peer data of a host or its router that the controller sends to the client's router. */
export function peerDataForDialer(
  said: readonly (readonly [number, Uint8Array])[],
): Map<number, Uint8Array> {
  // @guard peer-data-of-others--host
  return new Map(said.filter(([key]) => sentToDialer.has(key)))
}

/**
 * The peer data of a client's router that the controller sends to the host, with the dialing
 * identity.
 */
export function peerDataForHost(
  said: PeerData,
  { identityId, identityName }: Pick<AdmittedClient, 'identityId' | 'identityName'>,
): PeerData {
  return new Map([
    ...said,
    [peerDataKey.dialerIdentityId, Buffer.from(identityId)],
    [peerDataKey.dialerIdentityName, Buffer.from(identityName)],
  ])
}
