import type { ChannelMessage } from '../frame.ts'
import { encodeText } from '../headers.ts'
import { edgeHeaderKey } from './edge.ts'

/** Keys of the data that the endpoints of a circuit exchange through controllers. */
export const peerDataKey = {
  publicKey: edgeHeaderKey.publicKey,
  callerId: edgeHeaderKey.callerId,
  appData: edgeHeaderKey.appData,
  connectionMarker: edgeHeaderKey.connectionMarker,
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
  [edgeHeaderKey.stickinessToken, peerDataKey.stickinessToken],
]

/** Keys of peer data, each with the key of the header in which the host receives the value. */
const hostData: readonly (readonly [peer: number, edge: number])[] = [
  ...sharedPeerDataKeys.map((key) => [key, key] as const),
  [peerDataKey.dialerIdentityId, edgeHeaderKey.dialerIdentityId],
  [peerDataKey.dialerIdentityName, edgeHeaderKey.dialerIdentityName],
]

/** Peer data for the host, from a client's connect request; the controller forwards it. */
export function peerDataFromClient({ headers }: ChannelMessage, identityId: string) {
  const data = new Map<number, Uint8Array>()
  for (const [key, to] of dialData) {
    const value = headers.get(key)
    if (value !== undefined) data.set(to, value)
  }
  data.set(peerDataKey.dialerIdentityId, encodeText(identityId))
  return data
}

/**
 * Headers of the response to a client, from the peer data of the circuit's host; other peer data is
 * not sent to the client.
 */
export function* connectResponseHeaders(data: ReadonlyMap<number, Uint8Array>) {
  for (const [key, value] of data) {
    // @guard peer-data-of-others--router
    if (key === peerDataKey.stickinessToken) yield [edgeHeaderKey.stickinessToken, value] as const
    else if (key === edgeHeaderKey.publicKey) yield [key, value] as const
  }
}

/** Headers of a dial to a host, from the peer data of the connecting client. */
export function* dialRequestHeaders(data: ReadonlyMap<number, Uint8Array>) {
  for (const [key, to] of hostData) {
    const value = data.get(key)
    if (value !== undefined) yield [to, value] as const
  }
}
