import { randomFillSync } from 'node:crypto'

/**
 * Place of a request in a trace that others began, or that begins with it (W3C Trace Context,
 * level 1).
 */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string
  /** 16 hex digits: what this controller does for the request. */
  readonly spanId: string
  /** 16 hex digits: the span of whoever sent it; '' where the trace begins here. */
  readonly parentSpanId: string
  /**
   * The caller records this trace, and wants to find it in the logs of those that it goes through.
   */
  readonly isSampled: boolean
}

/**
 * Version 00 alone: what a later version means by its parts is not known here. Zeros are no ids.
 */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/
const SAMPLED = 1

const TRACE_ID_BYTES = 16
const SPAN_ID_BYTES = 8
/**
 * Length of a trace as it crosses to another controller: trace id, then the span there is behind
 * it.
 */
export const TRACE_BYTES = TRACE_ID_BYTES + SPAN_ID_BYTES

/** Random bytes are drawn in bulk: one draw a request would cost more than all else here. */
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
 * Reads the header as it came. One that is missing, malformed or given twice begins a trace, as the
 * recommendation has it.
 */
export function traceOf(header: unknown): TraceContext {
  const spanId = randomHex(SPAN_ID_BYTES)
  const found = typeof header === 'string' ? TRACEPARENT.exec(header) : null
  const [, traceId, parentSpanId, flags] = found ?? []
  if (traceId === undefined || parentSpanId === undefined || flags === undefined) {
    return { traceId: randomHex(TRACE_ID_BYTES), spanId, parentSpanId: '', isSampled: false }
  }
  const isSampled = (Number.parseInt(flags, 16) & SAMPLED) !== 0
  return { traceId, spanId, parentSpanId, isSampled }
}

/** Bytes that cross to the leader with a write: none for a trace that nobody records. */
export function traceBytes(trace: TraceContext | undefined): Uint8Array {
  if (trace?.isSampled !== true) return NO_TRACE
  return Uint8Array.from(Buffer.from(trace.traceId + trace.spanId, 'hex'))
}

export const NO_TRACE = new Uint8Array(0)

/** Ids in what came from another controller; null where there are none. */
export function tracedBy(bytes: Uint8Array): Pick<TraceContext, 'traceId' | 'parentSpanId'> | null {
  if (bytes.length !== TRACE_BYTES) return null
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
  const traceId = hex.slice(0, 2 * TRACE_ID_BYTES)
  return { traceId, parentSpanId: hex.slice(2 * TRACE_ID_BYTES) }
}
