import { CONNECT_BY_SERVICE } from '../../lib/router-capabilities.ts'
import type { Outgoing } from '../../channel/channel.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import {
  flagValue,
  int32Value,
  readInt32,
  readUint64,
  textValue,
  uint64Value,
} from '../../channel/headers.ts'
import { headerKey } from '../../channel/numbers.ts'
import type { Piece } from '../../overlay/circuits/circuit-ends.ts'
import type { TraceAnswer, TraceRequest } from '../../overlay/circuits/route-trace.ts'

/** The application protocol of the channels of clients. */
export const EDGE_PROTOCOL = 'ziti-edge'

/** Content types between a client and a router. */
export const edgeMessage = {
  /** A client reports on its device. */
  posture: 10_800,
  payload: 1100,
  acknowledgement: 1101,
  control: 1102,
  xgressClosed: 1103,
  connect: 60_783,
  stateConnected: 60_784,
  stateClosed: 60_785,
  data: 60_786,
  dial: 60_787,
  dialSuccess: 60_788,
  dialFailed: 60_789,
  bind: 60_790,
  unbind: 60_791,
  updateBind: 60_794,
  healthEvent: 60_795,
  traceRoute: 60_796,
  traceRouteAnswer: 60_797,
  inspectConnection: 60_798,
  bindSuccess: 60_800,
  tokenUpdated: 60_801,
  updateTokenFailed: 60_802,
  updateToken: 60_803,
  connectByService: 60_806,
} as const

export const edgeHeader = {
  traceId: 128,
  connectionId: 1000,
  sessionToken: 1002,
  publicKey: 1003,
  cost: 1004,
  precedence: 1005,
  instanceId: 1006,
  instanceSecret: 1007,
  callerId: 1008,
  flags: 1010,
  appData: 1011,
  /** A flag in a request to bind or its answer; the id itself in a dial. */
  routerConnectionId: 1012,
  isHealthy: 1013,
  errorCode: 1014,
  timestamp: 1015,
  hops: 1016,
  hopType: 1017,
  hopId: 1018,
  traceError: 1020,
  listenerId: 1021,
  connectionType: 1022,
  isInspectable: 1023,
  wantsBindSuccess: 1024,
  connectionMarker: 1025,
  circuitId: 1026,
  stickiness: 1027,
  isXgressInClient: 1028,
  controllerId: 1029,
  circuitAddress: 1030,
  structuredError: 1033,
  dialerId: 1034,
  dialerName: 1035,
  service: 1036,
  /** 1: the service is named, and not its id. */
  serviceNaming: 1037,
} as const

/** A header of the answer to a hello: several connections may share a channel. */
export const MULTIPLEX_HEADER = 1024

/** Another one: clients of OIDC may tell their posture to this router. */
export const TAKES_POSTURE_HEADER = 1032

/** Another one: a mask of what the router can do for clients, and its bits. */
export const CLIENT_CAPABILITIES_HEADER = 1039
export const clientCapabilities: readonly number[] = [CONNECT_BY_SERVICE]

/** Peer data of a circuit that its ends are told by another number than each other. */
export const peerData = { stickiness: 1114, dialerId: 1115, dialerName: 1116 } as const

/** Content of a request to connect that the host is shown. */
const dialData: readonly (readonly [edge: number, peer: number])[] = [
  [edgeHeader.publicKey, edgeHeader.publicKey],
  [edgeHeader.callerId, edgeHeader.callerId],
  [edgeHeader.appData, edgeHeader.appData],
  [edgeHeader.connectionMarker, edgeHeader.connectionMarker],
  [edgeHeader.stickiness, peerData.stickiness],
]

/** The same as the host is told it. */
const hostData: readonly (readonly [peer: number, edge: number])[] = [
  [edgeHeader.publicKey, edgeHeader.publicKey],
  [edgeHeader.callerId, edgeHeader.callerId],
  [edgeHeader.appData, edgeHeader.appData],
  [edgeHeader.connectionMarker, edgeHeader.connectionMarker],
  [peerData.dialerId, edgeHeader.dialerId],
  [peerData.dialerName, edgeHeader.dialerName],
]

/** Clients choose ids below it, their router those from it on: the two never meet. */
export const ROUTER_CONNECTION_ID_MIN = 0x80_00_00_00
export const CONNECTION_ID_MAX = 0xff_ff_ff_ff

export const edgeFlag = { fin: 1 } as const

/** Numbers that clients know refusals by. */
export const edgeErrorCode = {
  internal: 1,
  invalidSession: 3,
  invalidService: 6,
  invalidApiSessionType: 12,
} as const

/** Numbers that tell a client whether to try again. */
export const retryHint = { default: 0, startOver: 2, never: 3 } as const

/** Answer to an inspection of a connection: it is one that listens. */
export const CONNECTION_TYPE_BIND = 2

type Headers = ChannelMessage['headers']

/** Null when there is none. */
export function readConnectionId(headers: Headers): number | null {
  const id = readInt32(headers, edgeHeader.connectionId)
  return id === null ? null : id >>> 0
}

export function readUint16(headers: Headers, key: number): number | null {
  const value = headers.get(key)
  return value?.length === 2 ? (value[0] ?? 0) | ((value[1] ?? 0) << 8) : null
}

/** A message of one connection, with further headers. */
export function connectionMessage(
  contentType: number,
  connectionId: number,
  more: Iterable<readonly [number, Uint8Array]> = [],
  body: Uint8Array = new Uint8Array(),
): Outgoing {
  const headers = new Map([...more, [edgeHeader.connectionId, int32Value(connectionId)] as const])
  return { contentType, headers, body }
}

export interface ClosedReason {
  readonly text: string
  /** Absent: none is told. */
  readonly code?: number
  readonly retryHint?: number
  readonly circuitId?: string
}

export function stateClosed(connectionId: number, reason: ClosedReason): Outgoing {
  const { text, code, retryHint: hint, circuitId } = reason
  const headers: [number, Uint8Array][] = []
  if (code !== undefined) {
    const structured = { message: text, code, retryHint: hint ?? retryHint.default }
    headers.push(
      [edgeHeader.errorCode, int32Value(code)],
      [edgeHeader.structuredError, textValue(JSON.stringify(structured))],
    )
  }
  if (circuitId !== undefined) headers.push([edgeHeader.circuitId, textValue(circuitId)])
  return connectionMessage(edgeMessage.stateClosed, connectionId, headers, textValue(text))
}

export function dataMessage(connectionId: number, { body, edgeFlags, traceId }: Piece): Outgoing {
  const headers: [number, Uint8Array][] = []
  if (edgeFlags !== 0) headers.push([edgeHeader.flags, int32Value(edgeFlags)])
  if (traceId !== null) headers.push([edgeHeader.traceId, traceId])
  return connectionMessage(edgeMessage.data, connectionId, headers, body)
}

export function pieceIn({ headers, body }: ChannelMessage): Piece {
  return {
    body,
    edgeFlags: (readInt32(headers, edgeHeader.flags) ?? 0) >>> 0,
    traceId: headers.get(edgeHeader.traceId) ?? null,
  }
}

/** Peer data that a controller passes on to the host of a client that connects. */
export function peerDataOf({ headers }: ChannelMessage, identityId: string) {
  const data = new Map<number, Uint8Array>()
  for (const [key, to] of dialData) {
    const value = headers.get(key)
    if (value !== undefined) data.set(to, value)
  }
  data.set(peerData.dialerId, textValue(identityId))
  return data
}

/** Headers of the answer to a client, by the peer data of its circuit: it learns no more of it. */
export function* connectedHeaders(data: ReadonlyMap<number, Uint8Array>) {
  for (const [key, value] of data) {
    // @guard peer-data-of-others--router
    if (key === peerData.stickiness) yield [edgeHeader.stickiness, value] as const
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

/** Headers of a client's own circuit: which one, where it enters, and who made it. */
export function xgressHeaders(circuit: {
  readonly id: string
  readonly address: string
  readonly owner: { readonly id: string }
}): readonly (readonly [number, Uint8Array])[] {
  return [
    [edgeHeader.isXgressInClient, flagValue(true)],
    [edgeHeader.controllerId, textValue(circuit.owner.id)],
    [edgeHeader.circuitAddress, textValue(circuit.address)],
  ]
}

/** The request of a client for a hop of its route; the answer has its sequence as `userValue`. */
export function traceRequestIn({ headers, sequence }: ChannelMessage): TraceRequest {
  return {
    hops: (readInt32(headers, edgeHeader.hops) ?? 0) >>> 0,
    timestamp: readUint64(headers, edgeHeader.timestamp) ?? 0n,
    userValue: sequence,
  }
}

/** The router that the client asks is the first hop. */
export function ownHop({ hops, ...asked }: TraceRequest, error = ''): TraceAnswer {
  return { ...asked, hops: Math.max(0, hops - 1), hopType: 'xgress/edge', hopId: '', error }
}

export function traceAnswerMessage(connectionId: number, answer: TraceAnswer): Outgoing {
  return connectionMessage(edgeMessage.traceRouteAnswer, connectionId, [
    [headerKey.replyFor, int32Value(answer.userValue)],
    [edgeHeader.hops, int32Value(answer.hops)],
    [edgeHeader.timestamp, uint64Value(answer.timestamp)],
    [edgeHeader.hopType, textValue(answer.hopType)],
    [edgeHeader.hopId, textValue(answer.hopId)],
    ...(answer.error === '' ? [] : [[edgeHeader.traceError, textValue(answer.error)] as const]),
  ])
}
