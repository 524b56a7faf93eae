import {
  type ChannelHeaders,
  HEADER_ENTRY_PREFIX_BYTES,
  headersFault,
  HeaderView,
  readInt32At,
  byteView,
} from './header-view.ts'

/**
 * One frame of the channel protocol, version 2. All integers are little-endian: magic, content
 * type, sequence, header bytes, body bytes, then headers and body.
 *
 * Headers and body of a received message are views of the socket's data. They never change, and
 * they keep that data in memory: use `retainableBytes` for values that outlive the message.
 */
export interface ChannelMessage {
  readonly contentType: number
  readonly sequence: number
  readonly headers: ChannelHeaders
  readonly body: Uint8Array
  /**
   * Length on the wire of a body that exceeded its limit and was skipped; `body` is then empty.
   */
  readonly leftOutBytes?: number
}

/** A message to be sent; the channel assigns its sequence number. */
export interface OutboundMessage {
  readonly contentType: number
  readonly headers?: ChannelHeaders
  /**
   * The caller must not change the body after sending, because a large body is written without a
   * copy.
   */
  readonly body?: Uint8Array
}

interface FrameLimits {
  readonly frameHeadersBytesMax: number
  readonly frameHeadersMax: number
  readonly frameBodyBytesMax: number
  /**
   * Maximum body size by content type; a longer body is discarded as it arrives. Absent: every body
   * within `frameBodyBytesMax` is kept.
   */
  readonly keptBodyBytesMax?: (contentType: number) => number
}

interface Decoded {
  readonly messages: readonly ChannelMessage[]
  /** Why nothing can be decoded after these messages; null if there is no fault. */
  readonly fault: string | null
}

interface Sizes {
  readonly headersBytes: number
  readonly bodyBytes: number
  /** Zero for a skipped body. */
  readonly keptBytes: number
}

/** Little-endian integer: the bytes 03 06 09 0c. */
const MAGIC = 0x0c_09_06_03
const FIXED_BYTES = 20
const NOTHING = new Uint8Array()
/** Memory that is allocated initially for a frame; more is allocated as its bytes arrive. */
const ROOM_BYTES = 16 * 1024

type Content = Partial<Pick<ChannelMessage, 'headers' | 'body'>>

/** Length of a message on the wire. */
export function frameByteLength({ headers, body }: Content): number {
  return FIXED_BYTES + headersBytesOf(headers) + (body?.length ?? 0)
}

function headersBytesOf(headers: ChannelHeaders | undefined): number {
  if (headers === undefined) return 0
  if (headers instanceof HeaderView) return headers.blockBytes
  let bytes = 0
  for (const [, value] of headers) bytes += HEADER_ENTRY_PREFIX_BYTES + value.length
  return bytes
}

/** @throws {RangeError} for a content type or sequence beyond 32 bits. */
export function encodeFrame(message: ChannelMessage): Buffer {
  const { body } = message
  const head = encodeFrameHead(message, body.length)
  head.set(body, head.length - body.length)
  return head
}

/**
 * Encodes a frame without its body.
 * @param roomBytes unused bytes to append for the body.
 * @throws {RangeError} for a content type or sequence beyond 32 bits.
 */
export function encodeFrameHead(message: ChannelMessage, roomBytes = 0): Buffer {
  const { contentType, sequence, headers, body } = message
  const headersBytes = headersBytesOf(headers)
  const frame = Buffer.allocUnsafe(FIXED_BYTES + headersBytes + roomBytes)
  frame.writeUInt32LE(MAGIC, 0)
  frame.writeInt32LE(contentType, 4)
  frame.writeInt32LE(sequence, 8)
  frame.writeInt32LE(headersBytes, 12)
  frame.writeInt32LE(body.length, 16)
  if (headers instanceof HeaderView) {
    frame.set(headers.block, FIXED_BYTES)
    return frame
  }
  let at = FIXED_BYTES
  for (const [key, value] of headers) {
    frame.writeInt32LE(key, at)
    frame.writeInt32LE(value.length, at + 4)
    frame.set(value, at + HEADER_ENTRY_PREFIX_BYTES)
    at += HEADER_ENTRY_PREFIX_BYTES + value.length
  }
  return frame
}

/**
 * Splits a byte stream into messages. It never throws. It stores at most one frame within the
 * limits plus the last chunk: it checks announced sizes before it allocates memory, and allocates
 * as bytes arrive.
 *
 * A message is a view of the chunk that contains the message. A message that spans several chunks
 * is assembled once, in separate memory. Bytes of a returned message are never overwritten.
 */
export class FrameDecoder {
  #limits: FrameLimits
  /** Bytes to read, from `at` to `end`: a received chunk, or the buffer of one frame. */
  #bytes: Uint8Array = NOTHING
  #at = 0
  #end = 0
  #isRoom = false
  /** Bytes received after `#bytes`. */
  #tail: Uint8Array = NOTHING
  /** Remaining bytes of a body that is skipped. */
  #skipBytes = 0
  #takenBytes = 0
  #fault: string | null = null

  constructor(limits: FrameLimits) {
    this.#limits = limits
  }

  /** Sets the limits for later messages; a hello has smaller limits than later messages. */
  set limits(limits: FrameLimits) {
    this.#limits = limits
  }

  /** Bytes of memory that the decoder holds: received bytes, and space for the rest of a frame. */
  get roomBytes(): number {
    return this.#bytes.length + this.#tail.length
  }

  /**
   * Why nothing can be decoded after the messages that were returned; null if there is no fault.
   */
  get fault(): string | null {
    return this.#fault
  }

  /** Size on the wire of the message that was returned last, including a skipped body. */
  get takenBytes(): number {
    return this.#takenBytes
  }

  /** Returns all complete messages. */
  push(chunk: Uint8Array): Decoded {
    this.append(chunk)
    const messages: ChannelMessage[] = []
    for (let next = this.take(); next !== null; next = this.take()) messages.push(next)
    return { messages, fault: this.#fault }
  }

  /** @param chunk must not be changed later, because messages are views of the chunk. */
  append(chunk: Uint8Array): void {
    if (this.#fault !== null) return
    const left = chunk.subarray(this.#skipped(chunk.length))
    // This rarely copies: more than one chunk waits only while the caller does not call `take`.
    this.#tail = this.#tail.length === 0 ? left : Buffer.concat([this.#tail, left])
  }

  /**
   * Content type of the next message; null while the message is incomplete, and after a fault.
   */
  nextType(): number | null {
    return this.#next() === null ? null : readInt32At(this.#bytes, this.#at + 4)
  }

  /** The next message; null while the message is incomplete, and after a fault. */
  take(): ChannelMessage | null {
    const sizes = this.#next()
    if (sizes === null) return null
    const { headersBytes, bodyBytes, keptBytes } = sizes
    const [bytes, at] = [this.#bytes, this.#at]
    const headersAt = at + FIXED_BYTES
    const bodyAt = headersAt + headersBytes
    const fault = headersFault(bytes, headersAt, bodyAt, this.#limits.frameHeadersMax)
    if (fault !== null) return this.#fail(fault)
    const message = {
      contentType: readInt32At(bytes, at + 4),
      sequence: readInt32At(bytes, at + 8),
      headers: new HeaderView(bytes, headersAt, bodyAt),
      body: byteView(bytes, bodyAt, bodyAt + keptBytes),
    }
    this.#takenBytes = FIXED_BYTES + headersBytes + bodyBytes
    this.#at = bodyAt + keptBytes
    if (keptBytes < bodyBytes) this.#skip(bodyBytes)
    // Drops the reference to the last chunk, so that an idle channel keeps no received data in
    // memory.
    if (this.#at === this.#end) this.#read(NOTHING)
    return keptBytes === bodyBytes ? message : { ...message, leftOutBytes: bodyBytes }
  }

  #skip(bytes: number): void {
    this.#skipBytes = bytes
    this.#at += this.#skipped(this.#end - this.#at)
    this.#tail = this.#tail.subarray(this.#skipped(this.#tail.length))
  }

  /** @returns how many of the next received bytes belong to the skipped body. */
  #skipped(bytes: number): number {
    const skipped = Math.min(this.#skipBytes, bytes)
    this.#skipBytes -= skipped
    return skipped
  }

  #read(chunk: Uint8Array): void {
    this.#bytes = chunk
    this.#at = 0
    this.#end = chunk.length
    this.#isRoom = false
  }

  /**
   * Sizes of the next frame, once its head and all bytes to keep have arrived; null before that,
   * and after a fault.
   */
  #next(): Sizes | null {
    if (this.#fault !== null || !this.#gather(FIXED_BYTES)) return null
    const [bytes, at] = [this.#bytes, this.#at]
    if (readInt32At(bytes, at) !== MAGIC) return this.#fail('unknown magic')
    const headersBytes = readInt32At(bytes, at + 12)
    const bodyBytes = readInt32At(bytes, at + 16)
    const { frameHeadersBytesMax, frameBodyBytesMax, keptBodyBytesMax } = this.#limits
    if (headersBytes < 0 || headersBytes > frameHeadersBytesMax) {
      return this.#fail(`${headersBytes} bytes of headers`)
    }
    if (bodyBytes < 0 || bodyBytes > frameBodyBytesMax) {
      return this.#fail(`${bodyBytes} bytes of body`)
    }
    const isKept = bodyBytes <= (keptBodyBytesMax?.(readInt32At(bytes, at + 4)) ?? bodyBytes)
    const keptBytes = isKept ? bodyBytes : 0
    const isWhole = this.#gather(FIXED_BYTES + headersBytes + keptBytes)
    return isWhole ? { headersBytes, bodyBytes, keptBytes } : null
  }

  /**
   * Makes the first bytes of the next frame contiguous in memory, as far as they have arrived;
   * copies them only if they span several chunks.
   * @returns whether all of them have arrived.
   */
  #gather(bytes: number): boolean {
    if (this.#at === this.#end && this.#tail.length > 0) {
      this.#read(this.#tail)
      this.#tail = NOTHING
    }
    const missing = bytes - (this.#end - this.#at)
    if (missing <= 0) return true
    const added = this.#tail.subarray(0, missing)
    if (added.length === 0) return false
    this.#makeRoom(added.length, bytes)
    this.#bytes.set(added, this.#end)
    this.#end += added.length
    this.#tail = this.#tail.subarray(added.length)
    return added.length === missing
  }

  /**
   * Makes space for more bytes of the next frame in a buffer that is used only for this frame,
   * because returned messages still refer to the old chunk.
   */
  #makeRoom(moreBytes: number, frame: number): void {
    const have = this.#end - this.#at
    const needed = have + moreBytes
    if (this.#isRoom && this.#at + needed <= this.#bytes.length) return
    const room = Buffer.allocUnsafe(Math.min(frame, Math.max(ROOM_BYTES, 2 * needed)))
    room.set(this.#bytes.subarray(this.#at, this.#end))
    this.#read(room)
    this.#end = have
    this.#isRoom = true
  }

  #fail(fault: string): null {
    this.#fault = fault
    this.#read(NOTHING)
    this.#tail = NOTHING
    return null
  }
}
