import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'

import { eventLimits } from '../limits.ts'

/** RFC 6455, 1.3. */
const KEY_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const
const CONTROL_BYTES_MAX = 125
const LAST = 0x80
const MASKED = 0x80

export const closeCode = { normal: 1000, goingAway: 1001, protocol: 1002, tooBig: 1009 } as const

export interface WebSocketHandlers {
  readonly onMessage: (data: Buffer) => void
  readonly onDrain: () => void
  /** Called once, however it ended. */
  readonly onClose: () => void
}

/** What a client is answered that asks for a web socket. */
export function upgradeAnswer(key: string): string {
  const accept = createHash('sha1').update(`${key}${KEY_SUFFIX}`).digest('base64')
  return `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`
}

/**
 * The server's end of a web socket (RFC 6455), as far as the management channel uses it: binary
 * messages, whole or in pieces, without extensions. Whatever is larger than a request may be, or is
 * not as the standard says, closes it.
 */
export class WebSocket {
  readonly #socket: Duplex
  readonly #handlers: WebSocketHandlers
  #received: Buffer = Buffer.alloc(0)
  /** Of a message in pieces. */
  #pieces: Buffer[] | null = null
  #piecesBytes = 0
  #isClosing = false
  #isClosed = false

  constructor(socket: Duplex, head: Buffer, handlers: WebSocketHandlers) {
    this.#socket = socket
    this.#handlers = handlers
    // Read like all that follows, and not before whoever made this knows of it.
    if (head.length > 0) socket.unshift(head)
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('drain', () => handlers.onDrain())
    socket.on('error', () => socket.destroy())
    socket.once('close', () => this.#end())
    socket.once('end', () => socket.destroy())
  }

  /** @returns false when the client should read first. */
  send(data: Uint8Array): boolean {
    return this.#write(opcode.binary, data)
  }

  /** Its answer is not waited for: the connection tells whether the client is there. */
  ping(): boolean {
    return this.#write(opcode.ping, new Uint8Array())
  }

  close(code: number, reason: string): void {
    if (this.#isClosing) return
    const text = Buffer.from(reason, 'utf8').subarray(0, CONTROL_BYTES_MAX - 2)
    const payload = Buffer.alloc(2 + text.length)
    payload.writeUInt16BE(code, 0)
    text.copy(payload, 2)
    this.#write(opcode.close, payload)
    this.#isClosing = true
    this.#socket.end()
    const timer = setTimeout(() => this.#socket.destroy(), eventLimits.eventLingerMs)
    this.#socket.once('close', () => clearTimeout(timer))
  }

  #end(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#handlers.onClose()
  }

  #write(kind: number, data: Uint8Array): boolean {
    if (this.#isClosing || this.#isClosed) return true
    const head = headOf(kind, data.length)
    return this.#socket.write(Buffer.concat([head, data]))
  }

  #take(chunk: Buffer): void {
    if (this.#isClosing) return
    this.#received = Buffer.concat([this.#received, chunk])
    for (;;) {
      const frame = readFrame(this.#received)
      if (frame === null) return
      if (typeof frame === 'number') {
        this.close(frame, 'a frame is not as it must be')
        return
      }
      this.#received = this.#received.subarray(frame.bytes)
      this.#onFrame(frame)
      if (this.#isClosing) return
    }
  }

  #onFrame({ kind, isLast, payload }: Frame): void {
    switch (kind) {
      case opcode.ping:
        this.#write(opcode.pong, payload)
        return
      case opcode.pong:
        return
      case opcode.close:
        this.close(closeCode.normal, '')
        return
      case opcode.binary:
        if (this.#pieces !== null) this.close(closeCode.protocol, 'a message begins within another')
        else if (isLast) this.#handlers.onMessage(payload)
        else this.#begin(payload)
        return
      case opcode.continuation:
        this.#goOn(payload, isLast)
        return
      default:
        this.close(closeCode.protocol, 'only binary messages are taken')
    }
  }

  #begin(payload: Buffer): void {
    this.#pieces = [payload]
    this.#piecesBytes = payload.length
  }

  #goOn(payload: Buffer, isLast: boolean): void {
    const pieces = this.#pieces
    if (pieces === null) {
      this.close(closeCode.protocol, 'a message goes on that has not begun')
      return
    }
    pieces.push(payload)
    // An empty piece costs memory, too.
    this.#piecesBytes += payload.length + 1
    if (this.#piecesBytes > eventLimits.webSocketMessageBytesMax) {
      this.close(closeCode.tooBig, 'the message is too large')
      return
    }
    if (!isLast) return
    this.#pieces = null
    this.#handlers.onMessage(Buffer.concat(pieces))
  }
}

interface Frame {
  readonly kind: number
  readonly isLast: boolean
  readonly payload: Buffer
  /** With its head. */
  readonly bytes: number
}

function headOf(kind: number, length: number): Buffer {
  if (length <= CONTROL_BYTES_MAX) return Buffer.from([LAST | kind, length])
  const isShort = length <= 0xffff
  const head = Buffer.alloc(isShort ? 4 : 10)
  head[0] = LAST | kind
  head[1] = isShort ? 126 : 127
  if (isShort) head.writeUInt16BE(length, 2)
  else head.writeBigUInt64BE(BigInt(length), 2)
  return head
}

/**
 * Null while it is incomplete; a close code when it is none. Its size is judged before room is made
 * for it.
 */
function readFrame(received: Buffer): Frame | number | null {
  if (received.length < 2) return null
  const [first = 0, second = 0] = received
  const kind = first & 0x0f
  const isLast = (first & LAST) !== 0
  const isControl = kind >= opcode.close
  const short = second & 0x7f
  // Extensions are not agreed on, a client masks, and a control frame is small and whole.
  if ((first & 0x70) !== 0 || (second & MASKED) === 0) return closeCode.protocol
  if (isControl && (!isLast || short > CONTROL_BYTES_MAX)) return closeCode.protocol
  if (short === 127) return closeCode.tooBig
  const headBytes = short === 126 ? 4 : 2
  if (received.length < headBytes + 4) return null
  const length = short === 126 ? received.readUInt16BE(2) : short
  if (length > eventLimits.webSocketMessageBytesMax) return closeCode.tooBig
  const bytes = headBytes + 4 + length
  if (received.length < bytes) return null
  const mask = received.subarray(headBytes, headBytes + 4)
  const payload = Buffer.from(received.subarray(headBytes + 4, bytes))
  for (let at = 0; at < payload.length; at += 1)
    payload[at] = (payload[at] ?? 0) ^ (mask[at % 4] ?? 0)
  return { kind, isLast, payload, bytes }
}
