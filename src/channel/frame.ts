/**
 * One frame of the channel protocol, version 2. All integers are little-endian: magic, content
 * type, sequence, bytes of headers, bytes of body, then both.
 */
export interface ChannelMessage {
  readonly contentType: number
  readonly sequence: number
  /** Headers by key; unknown keys are kept. */
  readonly headers: ReadonlyMap<number, Uint8Array>
  readonly body: Uint8Array
  /** Length on the wire of a body that exceeds the bound of its message; it reads as empty. */
  readonly leftOutBytes?: number
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
const ENTRY_BYTES = 8
const BUFFER_BYTES_MIN = 4096

/** Length of the frame of a message. */
export function frameBytes({
  headers,
  body,
}: Partial<Pick<ChannelMessage, 'headers' | 'body'>>): number {
  let bytes = FIXED_BYTES + (body?.length ?? 0)
  for (const [, value] of headers ?? []) bytes += ENTRY_BYTES + value.length
  return bytes
}

/** @throws {RangeError} for a content type or sequence beyond 32 bits. */
export function encodeFrame({ contentType, sequence, headers, body }: ChannelMessage): Buffer {
  let headersBytes = 0
  for (const value of headers.values()) headersBytes += ENTRY_BYTES + value.length
  const frame = Buffer.allocUnsafe(FIXED_BYTES + headersBytes + body.length)
  frame.writeUInt32LE(MAGIC, 0)
  frame.writeInt32LE(contentType, 4)
  frame.writeInt32LE(sequence, 8)
  frame.writeInt32LE(headersBytes, 12)
  frame.writeInt32LE(body.length, 16)
  let at = FIXED_BYTES
  for (const [key, value] of headers) {
    frame.writeInt32LE(key, at)
    frame.writeInt32LE(value.length, at + 4)
    frame.set(value, at + ENTRY_BYTES)
    at += ENTRY_BYTES + value.length
  }
  frame.set(body, at)
  return frame
}

/**
 * Cuts a stream of bytes into messages. It never throws, and holds no more than one frame within
 * the limits and the last chunk: sizes are judged before room is made for what they announce, and
 * room grows with the bytes that have come.
 */
export class FrameDecoder {
  #limits: FrameLimits
  #buffer = Buffer.allocUnsafe(BUFFER_BYTES_MIN)
  #length = 0
  /** Bytes of it that were taken. */
  #at = 0
  #takenBytes = 0
  /** Bytes still to come of a body that is skipped. */
  #skipBytes = 0
  #fault: string | null = null

  constructor(limits: FrameLimits) {
    this.#limits = limits
  }

  /** For what comes after: a hello is bounded more tightly than what follows it. */
  set limits(limits: FrameLimits) {
    this.#limits = limits
  }

  /** Bytes set aside for the frame that is not complete. */
  get roomBytes(): number {
    return this.#buffer.length
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

  append(chunk: Uint8Array): void {
    if (this.#fault !== null) return
    this.#drop()
    this.#append(chunk.subarray(this.#skipped(chunk.length)))
  }

  /** Content type of the next message; null while it is incomplete, and after a fault. */
  nextType(): number | null {
    return this.#next() === null ? null : this.#buffer.readInt32LE(this.#at + 4)
  }

  /** Null while it is incomplete, and after a fault. */
  take(): ChannelMessage | null {
    const sizes = this.#next()
    if (sizes === null) return null
    const { headersBytes, bodyBytes, keptBytes } = sizes
    const [buffer, at] = [this.#buffer, this.#at]
    const bodyAt = at + FIXED_BYTES + headersBytes
    const headers = this.#headersIn(at + FIXED_BYTES, bodyAt)
    if (headers === null) return null
    this.#takenBytes = FIXED_BYTES + headersBytes + bodyBytes
    this.#at = bodyAt + keptBytes
    const message = {
      contentType: buffer.readInt32LE(at + 4),
      sequence: buffer.readInt32LE(at + 8),
      headers,
      // The buffer is used again, so values and body are copies.
      body: new Uint8Array(buffer.subarray(bodyAt, bodyAt + keptBytes)),
    }
    if (keptBytes === bodyBytes) return message
    this.#skipBytes = bodyBytes
    this.#at += this.#skipped(this.#length - this.#at)
    return { ...message, leftOutBytes: bodyBytes }
  }

  /** @returns how many of so many bytes belong to the body that is passed over. */
  #skipped(bytes: number): number {
    const skipped = Math.min(this.#skipBytes, bytes)
    this.#skipBytes -= skipped
    return skipped
  }

  #append(chunk: Uint8Array): void {
    const needed = this.#length + chunk.length
    if (needed > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length))
      grown.set(this.#buffer.subarray(0, this.#length))
      this.#buffer = grown
    }
    this.#buffer.set(chunk, this.#length)
    this.#length += chunk.length
  }

  #drop(): void {
    const [at, bytes] = [this.#at, this.#length - this.#at]
    this.#at = 0
    this.#length = bytes
    if (bytes < BUFFER_BYTES_MIN && this.#buffer.length > 16 * BUFFER_BYTES_MIN) {
      const left = this.#buffer.subarray(at, at + bytes)
      this.#buffer = Buffer.allocUnsafe(BUFFER_BYTES_MIN)
      this.#buffer.set(left)
    } else if (at > 0) {
      this.#buffer.copyWithin(0, at, at + bytes)
    }
  }

  /** Sizes of the next frame; null while it is incomplete, or when it is none. */
  #next(): Sizes | null {
    if (this.#fault !== null || this.#length - this.#at < FIXED_BYTES) return null
    const [buffer, at] = [this.#buffer, this.#at]
    if (buffer.readUInt32LE(at) !== MAGIC) return this.#fail('unknown magic')
    const headersBytes = buffer.readInt32LE(at + 12)
    const bodyBytes = buffer.readInt32LE(at + 16)
    const { frameHeadersBytesMax, frameBodyBytesMax, keptBodyBytesMax } = this.#limits
    if (headersBytes < 0 || headersBytes > frameHeadersBytesMax) {
      return this.#fail(`${headersBytes} bytes of headers`)
    }
    if (bodyBytes < 0 || bodyBytes > frameBodyBytesMax) {
      return this.#fail(`${bodyBytes} bytes of body`)
    }
    const isKept = bodyBytes <= (keptBodyBytesMax?.(buffer.readInt32LE(at + 4)) ?? bodyBytes)
    const keptBytes = isKept ? bodyBytes : 0
    if (this.#length - at < FIXED_BYTES + headersBytes + keptBytes) return null
    return { headersBytes, bodyBytes, keptBytes }
  }

  #headersIn(from: number, to: number): Map<number, Uint8Array> | null {
    const headers = new Map<number, Uint8Array>()
    let at = from
    while (at < to) {
      if (to - at < ENTRY_BYTES) return this.#fail('a header that ends early')
      const key = this.#buffer.readInt32LE(at)
      const bytes = this.#buffer.readInt32LE(at + 4)
      at += ENTRY_BYTES
      if (bytes < 0 || bytes > to - at) return this.#fail(`a header of ${bytes} bytes`)
      if (headers.size >= this.#limits.frameHeadersMax) return this.#fail('too many headers')
      headers.set(key, Uint8Array.from(this.#buffer.subarray(at, at + bytes)))
      at += bytes
    }
    return headers
  }

  #fail(fault: string): null {
    this.#fault = fault
    return null
  }
}
