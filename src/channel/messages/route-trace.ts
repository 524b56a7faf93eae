import type { ChannelMessage, OutboundMessage } from '../frame.ts'
import { encodeInt32, readInt32, readText, readUint64, encodeUint64 } from '../headers.ts'
import { messageContentLimits } from './limits.ts'
import { circuitControlHeader, circuitMessage, TRACE_ANSWER, TRACE_REQUEST } from './payload.ts'

/** Route trace request of a circuit; one of its routers or the other end answers. */
export interface TraceRequest {
  /** Position of the answering router, counted from the first one on the route. */
  readonly hops: number
  /** Time of the requester, repeated in the answer. */
  readonly timestamp: bigint
  /** Request number of the requester. */
  readonly userValue: number
}

/** The hop that answered a route trace. */
export interface TraceAnswer extends TraceRequest {
  readonly hopType: string
  readonly hopId: string
  /** Reason why the route ends here; '' if none. */
  readonly error: string
}

/** A route trace over a circuit: `hops` counts down at each router, and the one at 0 answers. */
export function traceRequestMessage(
  circuitId: Uint8Array,
  { hops, timestamp, userValue }: TraceRequest,
): OutboundMessage {
  const headers = new Map([
    [circuitControlHeader.hopCount, encodeInt32(hops)],
    [circuitControlHeader.timestamp, encodeUint64(timestamp)],
    [circuitControlHeader.userVal, encodeInt32(userValue)],
  ])
  const body = new Uint8Array(1 + circuitId.length)
  body[0] = TRACE_REQUEST
  body.set(circuitId, 1)
  return { contentType: circuitMessage.control, headers, body }
}

/** null when the control message is not an answer, or has no request number. */
export function readTraceAnswer({ headers, body }: ChannelMessage): TraceAnswer | null {
  const userValue = readInt32(headers, circuitControlHeader.userVal)
  if (body[0] !== TRACE_ANSWER || userValue === null) return null
  const text = (key: number): string =>
    readText(headers, key)?.slice(0, messageContentLimits.xgressControlBytesMax) ?? ''
  return {
    hops: (readInt32(headers, circuitControlHeader.hopCount) ?? 0) >>> 0,
    timestamp: readUint64(headers, circuitControlHeader.timestamp) ?? 0n,
    userValue,
    hopType: text(circuitControlHeader.hopType),
    hopId: text(circuitControlHeader.hopId),
    error: text(circuitControlHeader.error),
  }
}

/**
 * Remaining hops of a route trace request; null when the message is not one, or has no hops left.
 */
export function remainingTraceHops({ contentType, headers, body }: ChannelMessage): number | null {
  if (contentType !== circuitMessage.control || body[0] !== TRACE_REQUEST) return null
  const hops = (readInt32(headers, circuitControlHeader.hopCount) ?? 0) >>> 0
  return hops === 0 ? null : hops
}

/** A copy of a route trace request with this number of remaining hops. */
export function withRemainingHops(message: ChannelMessage, hops: number): ChannelMessage {
  return {
    ...message,
    headers: new Map(message.headers).set(circuitControlHeader.hopCount, encodeInt32(hops)),
  }
}
