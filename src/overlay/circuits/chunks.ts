import { retainableBody, type Payload } from '../../channel/messages/payload.ts'

/**
 * Maximum bytes of the encoded total length before the first chunk; each byte contains seven bits.
 */
const LENGTH_BYTES_MAX = 5
const ROOM_BYTES_MIN = 4096

/**
 * Joins the chunks of one payload. Its memory grows with the bytes that arrive, not with the total
 * length that the sender announces.
 */
export class ChunkJoiner {
  readonly #bytesMax: number
  #first: Payload | null = null
  #room = new Uint8Array(0)
  #length = 0
  #total = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#length
  }

  /**
   * @returns the whole payload, 'incomplete', or 'malformed' for an invalid length, or more bytes
   * than announced or allowed.
   */
  push(chunk: Payload): Payload | 'incomplete' | 'malformed' {
    let { body } = chunk
    if (this.#first === null) {
      const announced = readLength(body)
      // @guard payloads-that-lie--chunks
      if (announced === null || announced.total > this.#bytesMax) return 'malformed'
      this.#total = announced.total
      body = body.subarray(announced.bytes)
      if (body.length === this.#total) return { ...chunk, body }
      this.#first = { ...chunk, body: new Uint8Array(0), traceId: keptTraceId(chunk) }
    }
    if (body.length > this.#total - this.#length) return 'malformed'
    this.#append(body)
    if (this.#length < this.#total) return 'incomplete'
    const whole = { ...this.#first, body: this.#room.subarray(0, this.#length) }
    this.clear()
    return whole
  }

  clear(): void {
    this.#first = null
    this.#room = new Uint8Array(0)
    this.#length = 0
    this.#total = 0
  }

  #append(body: Uint8Array): void {
    const needed = this.#length + body.length
    if (needed > this.#room.length) {
      const size = Math.min(Math.max(needed, 2 * this.#room.length, ROOM_BYTES_MIN), this.#total)
      const room = new Uint8Array(size)
      room.set(this.#room.subarray(0, this.#length))
      this.#room = room
    }
    this.#room.set(body, this.#length)
    this.#length = needed
  }
}

/** Reads the total length. A first chunk without a body is a complete, empty payload. */
function readLength(body: Uint8Array): { total: number; bytes: number } | null {
  if (body.length === 0) return { total: 0, bytes: 0 }
  let total = 0
  for (let at = 0; at < Math.min(LENGTH_BYTES_MAX, body.length); at += 1) {
    const byte = body[at] ?? 0
    total += (byte & 0x7f) * 2 ** (7 * at)
    if (byte < 0x80) return { total, bytes: at + 1 }
  }
  return null
}

/** Splits a body into parts of at most `bytesMax`; the first part starts with the total length. */
export function splitPayloadBody(body: Uint8Array, bytesMax: number): readonly Uint8Array[] {
  const length: number[] = []
  let rest = body.length
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) length.push((rest & 0x7f) | 0x80)
  length.push(rest)
  const firstBytes = Math.max(1, bytesMax - length.length)
  const first = new Uint8Array(length.length + firstBytes)
  first.set(length)
  first.set(body.subarray(0, firstBytes), length.length)
  const parts: Uint8Array[] = [first]
  for (let at = firstBytes; at < body.length; at += bytesMax) {
    parts.push(body.subarray(at, at + bytesMax))
  }
  return parts
}

function keptTraceId({ traceId }: Payload): Uint8Array | null {
  return traceId === null ? null : retainableBody(traceId)
}
