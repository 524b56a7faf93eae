import { randomFillSync } from 'node:crypto'

/**
 * Position of a request in a distributed trace, which a caller or this controller began (W3C Trace
 * Context, level 1).
 */
export interface TraceContext {
  /** Id of the trace: 32 hex digits. */
  readonly traceId: string
  /** 16 hex digits: this controller's span for the request. */
  readonly spanId: string
  /** 16 hex digits: the span of the sender; '' when the trace begins here. */
  readonly parentSpanId: string
  /**
   * Whether the caller records this trace and wants each service that handles the request to log
   * it.
   */
  readonly isSampled: boolean
}

/**
 * Matches only version 00, because the format of later versions is unknown. Ids that are all zero
 * are invalid.
 */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/
const SAMPLED = 1

const TRACE_ID_BYTES = 16
const SPAN_ID_BYTES = 8
/**
 * Length of a trace that is sent to another controller: the trace id, then the id of the sending
 * span.
 */
const TRACE_BYTES = TRACE_ID_BYTES + SPAN_ID_BYTES

/**
 * The pool is filled with many random bytes by one system call, because one call per request would
 * be the largest cost of a trace.
 */
const pool = Buffer.alloc(4096)
let used = pool.length

function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  const hex = pool.toString('hex', used - bytes, used)
  return /^0+$/.test(hex) ? randomHex(bytes) : hex
}

/**
 * Parses a `traceparent` header. A missing, malformed or repeated header begins a new trace, as the
 * W3C recommendation requires.
 */
export function parseTraceparent(header: unknown): TraceContext {
  const spanId = randomHex(SPAN_ID_BYTES)
  const found = typeof header === 'string' ? TRACEPARENT.exec(header) : null
  const [, traceId, parentSpanId, flags] = found ?? []
  if (traceId === undefined || parentSpanId === undefined || flags === undefined) {
    return { traceId: randomHex(TRACE_ID_BYTES), spanId, parentSpanId: '', isSampled: false }
  }
  const isSampled = (Number.parseInt(flags, 16) & SAMPLED) !== 0
  return { traceId, spanId, parentSpanId, isSampled }
}

/**
 * The bytes that name a trace when this controller sends a write to the leader; empty for a trace
 * that no caller records.
 */
export function encodeTrace(trace: TraceContext | undefined): Uint8Array {
  if (trace?.isSampled !== true) return NO_TRACE
  return Uint8Array.from(Buffer.from(trace.traceId + trace.spanId, 'hex'))
}

export const NO_TRACE = new Uint8Array(0)

/**
 * Decodes the bytes that {@link encodeTrace} made on another controller; null when there are none.
 */
export function decodeTrace(
  bytes: Uint8Array,
): Pick<TraceContext, 'traceId' | 'parentSpanId'> | null {
  if (bytes.length !== TRACE_BYTES) return null
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
  const traceId = hex.slice(0, 2 * TRACE_ID_BYTES)
  return { traceId, parentSpanId: hex.slice(2 * TRACE_ID_BYTES) }
}
