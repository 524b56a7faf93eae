import { CONNECT_BY_SERVICE } from '../../lib/router-capabilities.ts'
import type { ChannelMessage, OutboundMessage } from '../frame.ts'
import {
  encodeFlag,
  encodeInt32,
  readInt32,
  readUint64,
  encodeText,
  encodeUint64,
} from '../headers.ts'
import { channelHeaderKey } from '../numbers.ts'
import type { PayloadContent } from './payload.ts'
import type { TraceResponse, TraceRequest } from './route-trace.ts'

/** The application protocol of the channels of clients. */
export const EDGE_PROTOCOL = 'ziti-edge'

/**
 * Content types between a client and a router: ContentType of OpenZiti's edge_client_pb. The types
 * for circuit data are in payload.ts, because links use them too.
 */
export const edgeContentType = {
  /** Posture report of a client. */
  postureResponse: 10_800,
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
  traceRouteResponse: 60_797,
  connInspect: 60_798,
  connInspectResponse: 60_799,
  bindSuccess: 60_800,
  updateTokenSuccess: 60_801,
  updateTokenFailure: 60_802,
  updateToken: 60_803,
  connectV2: 60_806,
} as const

/** Headers between a client and a router: HeaderId of edge_client_pb. */
export const edgeHeaderKey = {
  uuid: 128,
  connId: 1000,
  sessionToken: 1002,
  publicKey: 1003,
  cost: 1004,
  precedence: 1005,
  terminatorIdentity: 1006,
  terminatorIdentitySecret: 1007,
  callerId: 1008,
  flags: 1010,
  appData: 1011,
  /** A flag in a bind request and its response; in a dial, the connection ID itself. */
  routerProvidedConnId: 1012,
  healthStatus: 1013,
  errorCode: 1014,
  timestamp: 1015,
  traceHopCount: 1016,
  traceHopType: 1017,
  traceHopId: 1018,
  traceError: 1020,
  listenerId: 1021,
  connType: 1022,
  supportsInspect: 1023,
  /** Flag in the reply to a hello, and in a bind request. */
  supportsBindSuccess: 1024,
  connectionMarker: 1025,
  circuitId: 1026,
  stickinessToken: 1027,
  useXgressToSdk: 1028,
  xgressCtrlId: 1029,
  xgressAddress: 1030,
  /** Flag in the reply to a hello: OIDC clients may send their posture to this router. */
  supportsPostureChecks: 1032,
  structuredError: 1033,
  dialerIdentityId: 1034,
  dialerIdentityName: 1035,
  serviceId: 1036,
  /** Value 1: the request contains the service's name instead of its ID. */
  serviceIdentifierType: 1037,
  /** Capability mask in the reply to a hello. */
  routerCapabilities: 1039,
} as const

/** Capability bits that this router announces to clients. */
export const capabilitiesForClients: readonly number[] = [CONNECT_BY_SERVICE]

/**
 * Clients choose connection IDs below this value, and routers choose IDs at or above it, so the IDs
 * never collide.
 */
export const ROUTER_CONNECTION_ID_MIN = 0x80_00_00_00
export const CONNECTION_ID_MAX = 0xff_ff_ff_ff

/** Bits of the flags header in data messages; `fin`: the sender sends no more data. */
export const edgeFlag = { fin: 1 } as const

/** Error codes of refusals: Error of OpenZiti's edge_client_pb. */
export const edgeErrorCode = {
  internal: 1,
  invalidApiSession: 2,
  invalidSession: 3,
  wrongSessionType: 4,
  invalidEdgeRouterForSession: 5,
  invalidService: 6,
  tunnelingNotEnabled: 7,
  invalidTerminator: 8,
  encryptionDataMissing: 11,
  invalidApiSessionType: 12,
  invalidInstanceId: 13,
  accessDenied: 14,
  postureCheckFailed: 15,
} as const

/**
 * Text of a refusal that makes clients with OpenZiti's C SDK drop a cached service session and
 * request a new one. These clients compare only this text, not the code.
 */
export const INVALID_SESSION_MESSAGE = 'Invalid Session'

/** Hints in a refusal, by which a client decides whether and how to retry. */
export const retryHint = { default: 0, startOver: 2, notRetriable: 3 } as const

/**
 * Connection types in the response to a connection inspection; 0 means that the connection does not
 * exist.
 */
export const connectionTypeCode = { dial: 1, bind: 2 } as const

type Headers = ChannelMessage['headers']

/** Null if the header is missing. */
export function readConnectionId(headers: Headers): number | null {
  const id = readInt32(headers, edgeHeaderKey.connId)
  return id === null ? null : id >>> 0
}

/** Null if the header is absent or does not have 2 bytes. */
export function readUint16(headers: Headers, key: number): number | null {
  const value = headers.get(key)
  return value?.length === 2 ? (value[0] ?? 0) | ((value[1] ?? 0) << 8) : null
}

/** A message for one connection, with additional headers. */
export function connectionMessage(
  contentType: number,
  connectionId: number,
  more: Iterable<readonly [number, Uint8Array]> = [],
  body: Uint8Array = new Uint8Array(),
): OutboundMessage {
  const headers = new Map([...more, [edgeHeaderKey.connId, encodeInt32(connectionId)] as const])
  return { contentType, headers, body }
}

/** Why a connection of a client was closed; sent with {@link connectionClosedMessage}. */
export interface ConnectionCloseReason {
  readonly text: string
  /** Absent if no code is sent. */
  readonly code?: number
  readonly retryHint?: number
  readonly circuitId?: string
}

/** Reports to a client that its connection has closed. */
export function connectionClosedMessage(
  connectionId: number,
  reason: ConnectionCloseReason,
): OutboundMessage {
  const { text, code, retryHint: hint, circuitId } = reason
  const headers: [number, Uint8Array][] = []
  if (code !== undefined) {
    const structured = { message: text, code, retryHint: hint ?? retryHint.default }
    headers.push(
      [edgeHeaderKey.errorCode, encodeInt32(code)],
      [edgeHeaderKey.structuredError, encodeText(JSON.stringify(structured))],
    )
  }
  if (circuitId !== undefined) headers.push([edgeHeaderKey.circuitId, encodeText(circuitId)])
  return connectionMessage(edgeContentType.stateClosed, connectionId, headers, encodeText(text))
}

export function dataMessage(
  connectionId: number,
  { body, edgeFlags, traceId }: PayloadContent,
): OutboundMessage {
  const headers: [number, Uint8Array][] = []
  if (edgeFlags !== 0) headers.push([edgeHeaderKey.flags, encodeInt32(edgeFlags)])
  if (traceId !== null) headers.push([edgeHeaderKey.uuid, traceId])
  return connectionMessage(edgeContentType.data, connectionId, headers, body)
}

/** Reads the content of a data message. */
export function readDataMessage({ headers, body }: ChannelMessage): PayloadContent {
  return {
    body,
    edgeFlags: (readInt32(headers, edgeHeaderKey.flags) ?? 0) >>> 0,
    traceId: headers.get(edgeHeaderKey.uuid) ?? null,
  }
}

/**
 * Headers for a client that runs its own circuit endpoint: a flag, the controller ID and the
 * endpoint address.
 */
export function xgressHeaders(circuit: {
  readonly id: string
  readonly address: string
  readonly owner: { readonly id: string }
}): readonly (readonly [number, Uint8Array])[] {
  return [
    [edgeHeaderKey.useXgressToSdk, encodeFlag(true)],
    [edgeHeaderKey.xgressCtrlId, encodeText(circuit.owner.id)],
    [edgeHeaderKey.xgressAddress, encodeText(circuit.address)],
  ]
}

/**
 * A client's trace request; the response contains the request's sequence number as `userValue`.
 */
export function readTraceRequest({ headers, sequence }: ChannelMessage): TraceRequest {
  return {
    hops: (readInt32(headers, edgeHeaderKey.traceHopCount) ?? 0) >>> 0,
    timestamp: readUint64(headers, edgeHeaderKey.timestamp) ?? 0n,
    userValue: sequence,
  }
}

/**
 * Response to a trace request that ends at its first hop, the router to which the client is
 * connected.
 */
export function firstHopTraceResponse({ hops, ...asked }: TraceRequest, error = ''): TraceResponse {
  return { ...asked, hops: Math.max(0, hops - 1), hopType: 'xgress/edge', hopId: '', error }
}

export function traceResponseMessage(connectionId: number, answer: TraceResponse): OutboundMessage {
  return connectionMessage(edgeContentType.traceRouteResponse, connectionId, [
    [channelHeaderKey.replyFor, encodeInt32(answer.userValue)],
    [edgeHeaderKey.traceHopCount, encodeInt32(answer.hops)],
    [edgeHeaderKey.timestamp, encodeUint64(answer.timestamp)],
    [edgeHeaderKey.traceHopType, encodeText(answer.hopType)],
    [edgeHeaderKey.traceHopId, encodeText(answer.hopId)],
    ...(answer.error === '' ? [] : [[edgeHeaderKey.traceError, encodeText(answer.error)] as const]),
  ])
}
