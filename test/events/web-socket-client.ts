import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { expect } from 'vitest'

import { type ChannelMessage, encodeFrame, FrameDecoder } from '../../src/channel/frame.ts'
import { encodeText } from '../../src/channel/headers.ts'
import { channelContentType, channelHeaderKey } from '../../src/channel/numbers.ts'
import { eventually } from '../support/eventually.ts'

/** A minimal client of OpenZiti's web socket API. */
export class WebSocketClient {
  readonly socket: Socket
  readonly messages: ChannelMessage[] = []
  head = ''
  isClosed = false
  closeReason = ''
  #rest = Buffer.alloc(0)

  /** @param token session token; null: the client sends none. */
  constructor(to: NetConnectOpts, token: string | null, path = '/fabric/v1/ws-api') {
    this.socket = connect(to)
    const session = token === null ? '' : `zt-session: ${token}\r\n`
    this.socket.write(
      `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${session}connection: Upgrade\r\nupgrade: websocket\r\n` +
        `sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    )
    this.socket.on('data', (chunk: Buffer) => this.#take(chunk))
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.isClosed = true
    })
  }

  ask(body: unknown, kind = 10_040): void {
    const bytes =
      body instanceof Uint8Array
        ? body
        : encodeText(typeof body === 'string' ? body : JSON.stringify(body))
    const data = encodeFrame({
      contentType: kind,
      sequence: 7,
      headers: new Map<number, Uint8Array>(),
      body: bytes,
    })
    this.frame(0x82, data)
  }

  /** Sends a frame, masked as clients must do. */
  frame(first: number, data: Uint8Array): void {
    const head = Buffer.alloc(8)
    head[0] = first
    head[1] = 0x80 | 126
    head.writeUInt16BE(data.length, 2)
    head.writeUInt32BE(0x01020304, 4)
    const masked = Buffer.from(data.map((byte, at) => byte ^ ((at % 4) + 1)))
    this.socket.write(Buffer.concat([head, masked]))
  }

  get events(): readonly Readonly<Record<string, unknown>>[] {
    return this.messages
      .filter((one) => one.contentType === 10_041)
      .map(({ body }) => JSON.parse(Buffer.from(body).toString()) as Record<string, unknown>)
  }

  #take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    if (this.head === '') {
      const end = this.#rest.indexOf('\r\n\r\n')
      if (end === -1) return
      this.head = this.#rest.subarray(0, end).toString()
      this.#rest = this.#rest.subarray(end + 4)
    }
    if (!this.head.startsWith('HTTP/1.1 101')) return
    for (;;) {
      const [first = 0, short = 0] = this.#rest
      if (this.#rest.length < 2) return
      const at = short === 126 ? 4 : 2
      const length = short === 126 ? this.#rest.readUInt16BE(2) : short
      if (this.#rest.length < at + length) return
      const payload = this.#rest.subarray(at, at + length)
      this.#rest = this.#rest.subarray(at + length)
      if ((first & 0x0f) === 8) this.closeReason = payload.subarray(2).toString()
      if ((first & 0x0f) !== 2) continue
      const limits = { frameHeadersBytesMax: 1e6, frameHeadersMax: 100, frameBodyBytesMax: 1e7 }
      this.messages.push(...new FrameDecoder(limits).push(payload).messages)
    }
  }
}

/** The single response to a request. */
export async function answerTo(
  one: WebSocketClient,
): Promise<{ isSuccess: boolean; text: string }> {
  await eventually(() => expect(one.messages).toHaveLength(1))
  const [reply] = one.messages
  expect(reply?.contentType).toBe(channelContentType.result)
  expect(Buffer.from(reply?.headers.get(channelHeaderKey.replyFor) ?? []).readInt32LE(0)).toBe(7)
  const isSuccess = reply?.headers.get(channelHeaderKey.resultSuccess)?.[0] === 1
  return { isSuccess, text: Buffer.from(reply?.body ?? []).toString() }
}
