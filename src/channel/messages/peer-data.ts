import type { ChannelMessage } from '../frame.ts'
import { encodeText } from '../headers.ts'
import { edgeHeader } from './edge.ts'

/** Keys of the data that the endpoints of a circuit exchange through controllers. */
export const peerDataKey = {
  publicKey: edgeHeader.publicKey,
  callerId: edgeHeader.callerId,
  appData: edgeHeader.appData,
  connectionMarker: edgeHeader.connectionMarker,
  terminatorLocalAddress: 1110,
  terminatorRemoteAddress: 1111,
  initiatorLocalAddress: 1112,
  initiatorRemoteAddress: 1113,
  stickinessToken: 1114,
  dialerIdentityId: 1115,
  dialerIdentityName: 1116,
} as const

/** Headers of the SDK protocol that have the same key in the peer data. */
export const sharedPeerDataKeys: readonly number[] = [
  peerDataKey.publicKey,
  peerDataKey.callerId,
  peerDataKey.appData,
  peerDataKey.connectionMarker,
]

/**
 * Headers of a client's connect request that are forwarded to the host, each with its peer data
 * key.
 */
const dialData: readonly (readonly [edge: number, peer: number])[] = [
  ...sharedPeerDataKeys.map((key) => [key, key] as const),
  [edgeHeader.stickinessToken, peerDataKey.stickinessToken],
]

/** Peer data keys, each with the header in which the host receives the value. */
const hostData: readonly (readonly [peer: number, edge: number])[] = [
  ...sharedPeerDataKeys.map((key) => [key, key] as const),
  [peerDataKey.dialerIdentityId, edgeHeader.dialerIdentityId],
  [peerDataKey.dialerIdentityName, edgeHeader.dialerIdentityName],
]

/** Peer data that a controller forwards from a connecting client to the host. */
export function clientPeerData({ headers }: ChannelMessage, identityId: string) {
  const data = new Map<number, Uint8Array>()
  for (const [key, to] of dialData) {
    const value = headers.get(key)
    if (value !== undefined) data.set(to, value)
  }
  data.set(peerDataKey.dialerIdentityId, encodeText(identityId))
  return data
}

/**
 * Headers of the response to a client, from the circuit's peer data; the remaining peer data is not
 * sent to the client.
 */
export function* connectAnswerHeaders(data: ReadonlyMap<number, Uint8Array>) {
  for (const [key, value] of data) {
    // @guard peer-data-of-others--router
    if (key === peerDataKey.stickinessToken) yield [edgeHeader.stickinessToken, value] as const
    else if (key === edgeHeader.publicKey) yield [key, value] as const
  }
}

/** Headers of a dial to a host, from the circuit's peer data. */
export function* dialHeaders(data: ReadonlyMap<number, Uint8Array>) {
  for (const [key, to] of hostData) {
    const value = data.get(key)
    if (value !== undefined) yield [to, value] as const
  }
}
