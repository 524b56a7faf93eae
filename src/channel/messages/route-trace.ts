import type { ChannelMessage, OutboundMessage } from '../frame.ts'
import { encodeInt32, readInt32, readText, readUint64, encodeUint64 } from '../headers.ts'
import { messageContentLimits } from './limits.ts'
import {
  circuitControlHeaderKey,
  circuitContentType,
  TRACE_RESPONSE,
  TRACE_REQUEST,
} from './payload.ts'

/**
 * Request that traces the route of a circuit; the router at the requested position, or the endpoint
 * on the other side, responds.
 */
export interface TraceRequest {
  /**
   * In a request: how many hops it still travels. In a response: how many of these hops remained.
   */
  readonly hops: number
  /** The requester's time, repeated in the response. */
  readonly timestamp: bigint
  /** Number by which the requester recognizes the response. */
  readonly userValue: number
}

/** Response to a route trace request, from the router or endpoint at the requested position. */
export interface TraceResponse extends TraceRequest {
  readonly hopType: string
  readonly hopId: string
  /** Why the trace could not continue at this hop; '' if there is no error. */
  readonly error: string
}

/**
 * A route trace over a circuit: each router decrements `hops`, and the router that reaches 0
 * responds.
 */
export function traceRequestMessage(
  circuitId: Uint8Array,
  { hops, timestamp, userValue }: TraceRequest,
): OutboundMessage {
  const headers = new Map([
    [circuitControlHeaderKey.hopCount, encodeInt32(hops)],
    [circuitControlHeaderKey.timestamp, encodeUint64(timestamp)],
    [circuitControlHeaderKey.userVal, encodeInt32(userValue)],
  ])
  const body = new Uint8Array(1 + circuitId.length)
  body[0] = TRACE_REQUEST
  body.set(circuitId, 1)
  return { contentType: circuitContentType.control, headers, body }
}

/** null when the control message is not a trace response, or has no request number. */
export function readTraceResponse({ headers, body }: ChannelMessage): TraceResponse | null {
  const userValue = readInt32(headers, circuitControlHeaderKey.userVal)
  if (body[0] !== TRACE_RESPONSE || userValue === null) return null
  const text = (key: number): string =>
    readText(headers, key)?.slice(0, messageContentLimits.xgressControlBytesMax) ?? ''
  return {
    hops: (readInt32(headers, circuitControlHeaderKey.hopCount) ?? 0) >>> 0,
    timestamp: readUint64(headers, circuitControlHeaderKey.timestamp) ?? 0n,
    userValue,
    hopType: text(circuitControlHeaderKey.hopType),
    hopId: text(circuitControlHeaderKey.hopId),
    error: text(circuitControlHeaderKey.error),
  }
}

/**
 * Remaining hops of a route trace request; null when the message is not such a request, or no hops
 * remain.
 */
export function remainingTraceHops({ contentType, headers, body }: ChannelMessage): number | null {
  if (contentType !== circuitContentType.control || body[0] !== TRACE_REQUEST) return null
  const hops = (readInt32(headers, circuitControlHeaderKey.hopCount) ?? 0) >>> 0
  return hops === 0 ? null : hops
}

/** A copy of a route trace request that may travel this number of further hops. */
export function withRemainingHops(message: ChannelMessage, hops: number): ChannelMessage {
  return {
    ...message,
    headers: new Map(message.headers).set(circuitControlHeaderKey.hopCount, encodeInt32(hops)),
  }
}
