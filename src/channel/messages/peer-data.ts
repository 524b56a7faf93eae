import type { ChannelMessage } from '../frame.ts'
import { textValue } from '../headers.ts'
import { edgeHeader } from './edge.ts'

/** Data that the ends of a circuit send each other, by way of controllers. */
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

/** Headers of the SDK protocol that are peer data by the same key. */
export const sharedPeerDataKeys: readonly number[] = [
  peerDataKey.publicKey,
  peerDataKey.callerId,
  peerDataKey.appData,
  peerDataKey.connectionMarker,
]

/** Headers of a request to connect that the host is shown. */
const dialData: readonly (readonly [edge: number, peer: number])[] = [
  ...sharedPeerDataKeys.map((key) => [key, key] as const),
  [edgeHeader.stickinessToken, peerDataKey.stickinessToken],
]

/** Headers in which the host is shown them. */
const hostData: readonly (readonly [peer: number, edge: number])[] = [
  ...sharedPeerDataKeys.map((key) => [key, key] as const),
  [peerDataKey.dialerIdentityId, edgeHeader.dialerIdentityId],
  [peerDataKey.dialerIdentityName, edgeHeader.dialerIdentityName],
]

/** Peer data that a controller passes on to the host of a client that connects. */
export function peerDataOf({ headers }: ChannelMessage, identityId: string) {
  const data = new Map<number, Uint8Array>()
  for (const [key, to] of dialData) {
    const value = headers.get(key)
    if (value !== undefined) data.set(to, value)
  }
  data.set(peerDataKey.dialerIdentityId, textValue(identityId))
  return data
}

/** Headers of the answer to a client, by the peer data of its circuit: it learns no more of it. */
export function* connectedHeaders(data: ReadonlyMap<number, Uint8Array>) {
  for (const [key, value] of data) {
    // @guard peer-data-of-others--router
    if (key === peerDataKey.stickinessToken) yield [edgeHeader.stickinessToken, value] as const
    else if (key === edgeHeader.publicKey) yield [key, value] as const
  }
}

/** Headers of the dial of a host, by the peer data of the circuit. */
export function* dialHeaders(data: ReadonlyMap<number, Uint8Array>) {
  for (const [key, to] of hostData) {
    const value = data.get(key)
    if (value !== undefined) yield [to, value] as const
  }
}
