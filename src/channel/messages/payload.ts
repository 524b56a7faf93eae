import type { ChannelMessage, OutboundMessage } from '../frame.ts'
import { encodeText } from '../headers.ts'
import { messageContentLimits } from './limits.ts'

/**
 * Content types of messages between the endpoints of a circuit, on links and on channels of SDKs:
 * ContentType of OpenZiti's xgress. `close` is XgClose of edge_client_pb.
 */
export const circuitContentType = {
  payload: 1100,
  acknowledgement: 1101,
  control: 1102,
  close: 1103,
} as const

/**
 * Channels read these types without a rate limit, because the endpoints of a circuit limit the data
 * in flight.
 */
export const circuitDataTypes: ReadonlySet<number> = new Set(Object.values(circuitContentType))

export const payloadFlag = {
  /**
   * Flag: the circuit ends; the receiver handles it like `endOfFile`. Together with `writeFailed`:
   * the stream of the sender is incomplete (an addition to OpenZiti's protocol).
   */
  circuitEnd: 1,
  /**
   * Flag: the frame comes from the circuit endpoint at the terminator; also set in acknowledgments.
   */
  fromTerminator: 2,
  circuitStart: 4,
  chunk: 8,
  sentAgain: 16,
  endOfFile: 32,
  writeFailed: 64,
} as const

/** Bit in the `capabilities` header: the sender supports the flag `endOfFile`. */
export const END_OF_FILE_CAPABILITY = 1 << 8

/** Headers of payloads and acknowledgments; endpoints of a circuit use keys 2000 to 2255. */
export const payloadHeaderKey = {
  uuid: 2000,
  capabilities: 2001,
  edgeFlags: 2016,
  circuitId: 2256,
  sequence: 2257,
  flags: 2258,
  recvBufferSize: 2259,
  rtt: 2260,
} as const

/** Headers of a circuit control message. */
export const circuitControlHeaderKey = {
  hopCount: 20,
  hopType: 21,
  hopId: 22,
  timestamp: 23,
  userVal: 24,
  error: 25,
} as const
export const TRACE_REQUEST = 1
export const TRACE_RESPONSE = 2

/** Maximum sequence number: OpenZiti routers use signed 32-bit integers. */
export const PAYLOAD_SEQUENCE_MAX = 0x7fff_ffff
/**
 * Value for `bufferedBytes` if the sender of an acknowledgment does not know how many bytes are
 * buffered. The sender of payloads sends no more until it receives a smaller value.
 */
const BUFFERED_UNKNOWN = 0xffff_ffff

const empty = new Uint8Array(0)

/**
 * Content of one payload, without its position in the stream. An endpoint never splits or merges
 * the contents of payloads.
 */
export interface PayloadContent {
  readonly body: Uint8Array
  /**
   * Value of `edgeHeaderKey.flags` in the SDK protocol: 1 FIN, 2 TRACE_UUID, 4 MULTIPART …; 0:
   * none.
   */
  readonly edgeFlags: number
  /** UUID of a traced payload, forwarded without parsing; null: none. */
  readonly traceId: Uint8Array | null
}

/** One numbered payload. Its body may be a view of a larger buffer. */
export interface Payload {
  readonly sequence: number
  readonly flags: number
  /** Low 16 bits of the sender's clock when it sent the payload, ms; 0: none. */
  readonly stamp: number
  readonly body: Uint8Array
  readonly edgeFlags: number
  readonly traceId: Uint8Array | null
  /** null in most payloads; only the first payload of an endpoint contains capabilities. */
  readonly capabilities: number | null
}

/**
 * Acknowledges payloads and reports how much its sender has buffered. The body is a list of
 * sequence numbers.
 */
export interface Acknowledgement {
  readonly flags: number
  /**
   * Bytes that the sender of this acknowledgment has received and its application has not read yet.
   */
  readonly bufferedBytes: number
  /** Stamp of the acknowledged payload, returned unchanged; 0: none. */
  readonly stamp: number
  /** Sequence numbers in wire form; see `readSequenceAt`. */
  readonly body: Uint8Array
}

const utf8 = new TextDecoder()

/** Circuit ID in a payload, acknowledgment or circuit control message; null: none. */
export function readCircuitId({ contentType, headers, body }: ChannelMessage): string | null {
  // The body of a control message is one byte for the kind, followed by the circuit id.
  const isControl = contentType === circuitContentType.control
  const value = isControl ? body.subarray(1) : headers.get(payloadHeaderKey.circuitId)
  if (value === undefined || value.length === 0) return null
  return value.length > messageContentLimits.circuitNameCharactersMax ? null : utf8.decode(value)
}

/**
 * Keys of the headers that are forwarded with a frame: headers for the circuit's endpoints and
 * headers of the frame.
 */
const onwardKeys = { from: payloadHeaderKey.uuid, to: payloadHeaderKey.rtt } as const

/**
 * The frame to forward, without headers of the channel on which it arrived: another channel would
 * misinterpret them, for example a reply number.
 */
export function withoutChannelHeaders({
  contentType,
  headers,
  body,
}: ChannelMessage): OutboundMessage {
  const kept = new Map<number, Uint8Array>()
  const isControl = contentType === circuitContentType.control
  for (const [key, value] of headers) {
    const isOfCircuit = key >= onwardKeys.from && key <= onwardKeys.to
    const isOfTrace =
      isControl && key >= circuitControlHeaderKey.hopCount && key <= circuitControlHeaderKey.error
    if (isOfCircuit || isOfTrace) kept.set(key, value)
  }
  return { contentType, headers: kept, body }
}

/** @returns null if the message is malformed. */
export function readPayload(message: ChannelMessage): Payload | null {
  const { headers, body, leftOutBytes = 0 } = message
  const sequence = readSequence(headers.get(payloadHeaderKey.sequence))
  const flags = littleEndian(headers.get(payloadHeaderKey.flags), 4)
  const stamp = littleEndian(headers.get(payloadHeaderKey.rtt), 2)
  const edgeFlags = littleEndian(headers.get(payloadHeaderKey.edgeFlags), 4)
  if (sequence === null || flags === null || stamp === null || edgeFlags === null) return null
  const traceId = headers.get(payloadHeaderKey.uuid) ?? null
  if (traceId !== null && traceId.length > messageContentLimits.xgressTraceIdBytesMax) return null
  if (leftOutBytes > 0) return null
  const capabilities = readCapabilities(headers.get(payloadHeaderKey.capabilities))
  return { sequence, flags, stamp, body, edgeFlags, traceId, capabilities }
}

/**
 * False for an empty payload whose flags or capabilities show that it only starts or ends the
 * stream. An empty payload without these counts as content.
 */
export function hasPayloadContent({
  body,
  flags,
  edgeFlags,
  traceId,
  capabilities,
}: Payload): boolean {
  if (body.length > 0 || edgeFlags !== 0 || traceId !== null) return true
  return (
    (flags & ~(payloadFlag.fromTerminator | payloadFlag.sentAgain)) === 0 && capabilities === null
  )
}

/** Whether the endpoint that hosts the service sent this payload or acknowledgment. */
export function isFromTerminator({ headers }: Pick<ChannelMessage, 'headers'>): boolean {
  const flags = littleEndian(headers.get(payloadHeaderKey.flags), 4) ?? 0
  return (flags & payloadFlag.fromTerminator) !== 0
}

/** @returns null if the message is malformed. */
export function readAcknowledgement(message: ChannelMessage): Acknowledgement | null {
  const { headers, body, leftOutBytes = 0 } = message
  const flags = littleEndian(headers.get(payloadHeaderKey.flags), 4)
  const stamp = littleEndian(headers.get(payloadHeaderKey.rtt), 2)
  const buffered = headers.get(payloadHeaderKey.recvBufferSize)
  const bufferedBytes = buffered === undefined ? BUFFERED_UNKNOWN : littleEndian(buffered, 4)
  if (flags === null || stamp === null || bufferedBytes === null) return null
  if (leftOutBytes > 0 || body.length % 4 !== 0) return null
  // @guard payloads-that-lie--sequences
  if (body.length / 4 > messageContentLimits.xgressSequencesPerMessageMax) return null
  return { flags, bufferedBytes, stamp, body }
}

/** Reads one sequence number from the body of an acknowledgment. */
export function readSequenceAt(body: Uint8Array, at: number): number {
  const high = ((body[at] ?? 0) << 24) | ((body[at + 1] ?? 0) << 16)
  return high | ((body[at + 2] ?? 0) << 8) | (body[at + 3] ?? 0)
}

interface OutgoingPayload extends PayloadContent {
  readonly sequence: number
  readonly flags: number
  readonly capabilities: number | null
}

/** @param circuitId the bytes of the circuit ID as sent on the wire. */
export function payloadMessage(
  circuitId: Uint8Array,
  payload: OutgoingPayload,
  stamp: number,
): OutboundMessage {
  const { sequence, flags, body, edgeFlags, traceId, capabilities } = payload
  const headers = new Map<number, Uint8Array>()
  headers.set(payloadHeaderKey.circuitId, circuitId)
  headers.set(payloadHeaderKey.sequence, integerValue(sequence, 8))
  if (flags !== 0) headers.set(payloadHeaderKey.flags, flagsValue(flags))
  headers.set(payloadHeaderKey.rtt, stampValue(stamp))
  if (edgeFlags !== 0) headers.set(payloadHeaderKey.edgeFlags, integerValue(edgeFlags, 4))
  if (traceId !== null) headers.set(payloadHeaderKey.uuid, traceId)
  if (capabilities !== null)
    headers.set(payloadHeaderKey.capabilities, capabilitiesValue(capabilities))
  return { contentType: circuitContentType.payload, headers, body }
}

/**
 * @param sequences may be empty in an acknowledgment that only reports the number of buffered
 * bytes.
 */
export function acknowledgementMessage(
  circuitId: Uint8Array,
  {
    flags,
    bufferedBytes,
    stamp,
    sequences,
  }: Omit<Acknowledgement, 'body'> & { readonly sequences: readonly number[] },
): OutboundMessage {
  const headers = new Map<number, Uint8Array>()
  headers.set(payloadHeaderKey.circuitId, circuitId)
  if (flags !== 0) headers.set(payloadHeaderKey.flags, flagsValue(flags))
  headers.set(payloadHeaderKey.recvBufferSize, integerValue(bufferedBytes, 4))
  headers.set(payloadHeaderKey.rtt, stampValue(stamp))
  const body = new Uint8Array(4 * sequences.length)
  for (let at = 0; at < sequences.length; at += 1) {
    const sequence = sequences[at] ?? 0
    body[4 * at] = sequence >>> 24
    body[4 * at + 1] = sequence >>> 16
    body[4 * at + 2] = sequence >>> 8
    body[4 * at + 3] = sequence
  }
  return { contentType: circuitContentType.acknowledgement, headers, body }
}

/** Response to a route trace request; null when the control message is not a valid request. */
export function routeTraceResponseMessage(
  request: ChannelMessage,
  { type, id }: { readonly type: string; readonly id: string },
): OutboundMessage | null {
  const { headers: asked, body } = request
  const hops = littleEndian(asked.get(circuitControlHeaderKey.hopCount), 4)
  if (body[0] !== TRACE_REQUEST || body.length < 2 || hops === null) return null
  if (body.length > messageContentLimits.xgressControlBytesMax) return null
  const headers = new Map<number, Uint8Array>()
  headers.set(circuitControlHeaderKey.hopCount, integerValue(Math.max(0, hops - 1), 4))
  headers.set(circuitControlHeaderKey.hopType, encodeText(type))
  headers.set(circuitControlHeaderKey.hopId, encodeText(id))
  // Copies these headers unchanged, because the endpoint that sent the request recognizes the
  // response by them.
  for (const key of [
    circuitControlHeaderKey.timestamp,
    circuitControlHeaderKey.userVal,
    payloadHeaderKey.uuid,
  ]) {
    const value = asked.get(key)
    if (value === undefined) continue
    if (value.length > messageContentLimits.xgressControlBytesMax) return null
    headers.set(key, value)
  }
  const answer = new Uint8Array(body)
  answer[0] = TRACE_RESPONSE
  return { contentType: circuitContentType.control, headers, body: answer }
}

/**
 * The value of a header; 0 if the header is absent, null if it has another length. Reads the bytes
 * without a DataView, for speed: this runs for each payload.
 */
function littleEndian(bytes: Uint8Array | undefined, length: 2 | 4): number | null {
  if (bytes === undefined) return 0
  if (bytes.length !== length) return null
  return length === 2 ? (bytes[0] ?? 0) | ((bytes[1] ?? 0) << 8) : uint32At(bytes)
}

function uint32At(bytes: Uint8Array): number {
  const low = (bytes[0] ?? 0) | ((bytes[1] ?? 0) << 8)
  return (low | ((bytes[2] ?? 0) << 16) | ((bytes[3] ?? 0) << 24)) >>> 0
}

function readSequence(bytes: Uint8Array | undefined): number | null {
  if (bytes?.length !== 8) return null
  const sequence = uint32At(bytes)
  const isOver = bytes[4] !== 0 || bytes[5] !== 0 || bytes[6] !== 0 || bytes[7] !== 0
  // @guard payloads-that-lie--sequence
  return isOver || sequence > PAYLOAD_SEQUENCE_MAX ? null : sequence
}

function readCapabilities(bytes: Uint8Array | undefined): number | null {
  return bytes?.length === 4 ? readSequenceAt(bytes, 0) : null
}

function integerValue(value: number, length: 4 | 8): Uint8Array {
  const bytes = new Uint8Array(length)
  bytes[0] = value
  bytes[1] = value >>> 8
  bytes[2] = value >>> 16
  bytes[3] = value >>> 24
  return bytes
}

const terminatorFlags = integerValue(payloadFlag.fromTerminator, 4)

function flagsValue(flags: number): Uint8Array {
  return flags === payloadFlag.fromTerminator ? terminatorFlags : integerValue(flags, 4)
}

function stampValue(stamp: number): Uint8Array {
  return Uint8Array.of(stamp, stamp >>> 8)
}

function capabilitiesValue(capabilities: number): Uint8Array {
  return integerValue(capabilities, 4).reverse()
}

/**
 * A stored view keeps its whole buffer in memory. A view is stored as it is if its buffer is at
 * most this many times as large.
 */
const PINNED_SCALE_MAX = 8

/** A body that may be stored: a copy if the view would keep a much larger buffer in memory. */
export function retainableBody(body: Uint8Array): Uint8Array {
  if (body.length === 0) return empty
  // @guard payloads-that-lie--pinned
  return body.length * PINNED_SCALE_MAX < body.buffer.byteLength ? new Uint8Array(body) : body
}
