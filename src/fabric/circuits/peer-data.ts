import type { AdmittedClient } from '../../ports/router-clients.ts'
import type { PeerData } from '../../channel/messages/circuit-requests.ts'
import { peerDataKey } from '../../channel/messages/peer-data.ts'

/**
 * Headers of the host that the dialer is told. Where the host is, and where its target, is not
 * among them.
 */
const sentToDialer: ReadonlySet<number> = new Set<number>([
  peerDataKey.publicKey,
  peerDataKey.stickinessToken,
])

/** The part of what a host, or its router, says that goes to the router of the client. */
export function dialerData(
  said: readonly (readonly [number, Uint8Array])[],
): Map<number, Uint8Array> {
  // @guard peer-data-of-others--host
  return new Map(said.filter(([key]) => sentToDialer.has(key)))
}

/** Data of a client's router, as the host hears it: who dials, the controller says. */
export function hostData(
  said: PeerData,
  { identityId, identityName }: Pick<AdmittedClient, 'identityId' | 'identityName'>,
): PeerData {
  return new Map([
    ...said,
    [peerDataKey.dialerIdentityId, Buffer.from(identityId)],
    [peerDataKey.dialerIdentityName, Buffer.from(identityName)],
  ])
}
