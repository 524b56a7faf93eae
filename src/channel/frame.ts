import {
  type ChannelHeaders,
  ENTRY_BYTES,
  headersFault,
  HeaderView,
  int32At,
  partOf,
} from './header-view.ts'

/**
 * One frame of the channel protocol, version 2. All integers are little-endian: magic, content
 * type, sequence, bytes of headers, bytes of body, then both.
 *
 * Headers and body of a message that was read are views of what came from the socket. They never
 * change, and hold it in memory: `keptBytes` is for values that outlive the message.
 */
export interface ChannelMessage {
  readonly contentType: number
  readonly sequence: number
  readonly headers: ChannelHeaders
  readonly body: Uint8Array
  /** Length on the wire of a body that exceeds the bound of its message; it reads as empty. */
  readonly leftOutBytes?: number
}

/** A message on its way out: the channel numbers it. */
export interface Outgoing {
  readonly contentType: number
  readonly headers?: ChannelHeaders
  /** Not to be changed after it was sent: a large one is written as it is. */
  readonly body?: Uint8Array
}

export interface FrameLimits {
  readonly frameHeadersBytesMax: number
  readonly frameHeadersMax: number
  readonly frameBodyBytesMax: number
  /** Bound by content type: a longer body is skipped as it arrives. Absent: none is. */
  readonly keptBodyBytesMax?: (contentType: number) => number
}

export interface Decoded {
  readonly messages: readonly ChannelMessage[]
  /** Why nothing after these messages can be read; null: nothing is wrong so far. */
  readonly fault: string | null
}

interface Sizes {
  readonly headersBytes: number
  readonly bodyBytes: number
  /** Zero for a body that is left out. */
  readonly keptBytes: number
}

/** Read as a little-endian integer: the bytes 03 06 09 0c. */
const MAGIC = 0x0c_09_06_03
const FIXED_BYTES = 20
const NOTHING = new Uint8Array()
/** Room that is made at once for a frame whose size has come; beyond it, as its bytes come. */
const ROOM_BYTES = 16 * 1024

type Content = Partial<Pick<ChannelMessage, 'headers' | 'body'>>

/** Length of the frame of a message. */
export function frameBytes({ headers, body }: Content): number {
  return FIXED_BYTES + headersBytesOf(headers) + (body?.length ?? 0)
}

function headersBytesOf(headers: ChannelHeaders | undefined): number {
  if (headers === undefined) return 0
  if (headers instanceof HeaderView) return headers.blockBytes
  let bytes = 0
  for (const [, value] of headers) bytes += ENTRY_BYTES + value.length
  return bytes
}

/** @throws {RangeError} for a content type or sequence beyond 32 bits. */
export function encodeFrame(message: ChannelMessage): Buffer {
  const { body } = message
  const head = encodeHead(message, body.length)
  head.set(body, head.length - body.length)
  return head
}

/**
 * The frame up to its body.
 * @param roomBytes left behind it.
 * @throws {RangeError} as `encodeFrame`.
 */
export function encodeHead(message: ChannelMessage, roomBytes = 0): Buffer {
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
    frame.set(value, at + ENTRY_BYTES)
    at += ENTRY_BYTES + value.length
  }
  return frame
}

/**
 * Cuts a stream of bytes into messages. It never throws, and holds no more than one frame within
 * the limits and the last chunk: sizes are judged before room is made for what they announce, and
 * room grows with the bytes that have come.
 *
 * A message is a view of the chunk that it came in. One that came in several is put together once,
 * in room of its own. No byte that belongs to a message is written again.
 */
export class FrameDecoder {
  #limits: FrameLimits
  /** Bytes that are read, from `at` to `end`: a chunk as it came, or the room of one frame. */
  #bytes: Uint8Array = NOTHING
  #at = 0
  #end = 0
  #isRoom = false
  /** Bytes that came after these. */
  #tail: Uint8Array = NOTHING
  /** Bytes still to come of a body that is skipped. */
  #skipBytes = 0
  #takenBytes = 0
  #fault: string | null = null

  constructor(limits: FrameLimits) {
    this.#limits = limits
  }

  /** For what comes after: a hello is bounded more tightly than what follows it. */
  set limits(limits: FrameLimits) {
    this.#limits = limits
  }

  /** Bytes that are held for what was not taken. */
  get roomBytes(): number {
    return this.#bytes.length + this.#tail.length
  }

  /** Why nothing after the messages that were taken can be read; null: nothing is wrong so far. */
  get fault(): string | null {
    return this.#fault
  }

  /** Bytes on the wire of the message that was taken last, with those of a body left out. */
  get takenBytes(): number {
    return this.#takenBytes
  }

  /** All messages that the bytes so far make. */
  push(chunk: Uint8Array): Decoded {
    this.append(chunk)
    const messages: ChannelMessage[] = []
    for (let next = this.take(); next !== null; next = this.take()) messages.push(next)
    return { messages, fault: this.#fault }
  }

  /** @param chunk belongs to the messages from here on, and is not to be written to. */
  append(chunk: Uint8Array): void {
    if (this.#fault !== null) return
    const left = chunk.subarray(this.#skipped(chunk.length))
    // Only while nothing is taken does more than one chunk wait.
    this.#tail = this.#tail.length === 0 ? left : Buffer.concat([this.#tail, left])
  }

  /** Content type of the next message; null while it is incomplete, and after a fault. */
  nextType(): number | null {
    return this.#next() === null ? null : int32At(this.#bytes, this.#at + 4)
  }

  /** Null while it is incomplete, and after a fault. */
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
      contentType: int32At(bytes, at + 4),
      sequence: int32At(bytes, at + 8),
      headers: new HeaderView(bytes, headersAt, bodyAt),
      body: partOf(bytes, bodyAt, bodyAt + keptBytes),
    }
    this.#takenBytes = FIXED_BYTES + headersBytes + bodyBytes
    this.#at = bodyAt + keptBytes
    if (keptBytes < bodyBytes) this.#skip(bodyBytes)
    // An idle channel holds nothing of what it has read.
    if (this.#at === this.#end) this.#read(NOTHING)
    return keptBytes === bodyBytes ? message : { ...message, leftOutBytes: bodyBytes }
  }

  #skip(bytes: number): void {
    this.#skipBytes = bytes
    this.#at += this.#skipped(this.#end - this.#at)
    this.#tail = this.#tail.subarray(this.#skipped(this.#tail.length))
  }

  /** @returns how many of so many bytes belong to the body that is passed over. */
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

  /** Sizes of the next frame, once its bytes are side by side; null before, and after a fault. */
  #next(): Sizes | null {
    if (this.#fault !== null || !this.#gather(FIXED_BYTES)) return null
    const [bytes, at] = [this.#bytes, this.#at]
    if (int32At(bytes, at) !== MAGIC) return this.#fail('unknown magic')
    const headersBytes = int32At(bytes, at + 12)
    const bodyBytes = int32At(bytes, at + 16)
    const { frameHeadersBytesMax, frameBodyBytesMax, keptBodyBytesMax } = this.#limits
    if (headersBytes < 0 || headersBytes > frameHeadersBytesMax) {
      return this.#fail(`${headersBytes} bytes of headers`)
    }
    if (bodyBytes < 0 || bodyBytes > frameBodyBytesMax) {
      return this.#fail(`${bodyBytes} bytes of body`)
    }
    const isKept = bodyBytes <= (keptBodyBytesMax?.(int32At(bytes, at + 4)) ?? bodyBytes)
    const keptBytes = isKept ? bodyBytes : 0
    const isWhole = this.#gather(FIXED_BYTES + headersBytes + keptBytes)
    return isWhole ? { headersBytes, bodyBytes, keptBytes } : null
  }

  /**
   * Brings the first bytes of the next frame side by side, as far as they have come.
   * @returns whether all of them have.
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

  /** Room of the next frame alone: what was handed out of a chunk stays as it is. */
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
