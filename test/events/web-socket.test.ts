import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { afterAll, expect, test } from 'vitest'

import { encodeFrame, FrameDecoder } from '../../src/channel/frame.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import { textValue } from '../../src/channel/headers.ts'
import { contentType, headerKey } from '../../src/channel/numbers.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { newIdentity, newService } from '../api/support/network.ts'
import { eventually } from '../support/eventually.ts'

const { controller, root, sessionOf } = await controllerForFile()
await controller.app.listen({ host: '127.0.0.1', port: 0 })
const { port } = controller.app.server.address() as { port: number }
const sockets: Client[] = []
afterAll(() => {
  for (const one of sockets) one.socket.destroy()
})

/** A client of the API family, as bare as can be. */
class Client {
  readonly socket: Socket
  readonly messages: ChannelMessage[] = []
  head = ''
  isClosed = false
  closeReason = ''
  #rest = Buffer.alloc(0)

  constructor(token: string, path = '/fabric/v1/ws-api', headers = '') {
    this.socket = connect(port, '127.0.0.1')
    this.socket.write(
      `GET ${path} HTTP/1.1\r\nhost: localhost\r\nzt-session: ${token}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
        `sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers}\r\n`,
    )
    this.socket.on('data', (chunk: Buffer) => this.#take(chunk))
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.isClosed = true
    })
    sockets.push(this)
  }

  ask(body: unknown, kind = 10_040): void {
    const data = encodeFrame({
      ...{ contentType: kind, sequence: 7, headers: new Map<number, Uint8Array>() },
      body: textValue(typeof body === 'string' ? body : JSON.stringify(body)),
    })
    this.frame(0x82, data)
  }

  /** Masked, as a client has to. */
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

async function answerTo(one: Client): Promise<{ isSuccess: boolean; text: string }> {
  await eventually(() => expect(one.messages).toHaveLength(1))
  const [reply] = one.messages
  expect(reply?.contentType).toBe(contentType.result)
  expect(Buffer.from(reply?.headers.get(headerKey.replyFor) ?? []).readInt32LE(0)).toBe(7)
  const isSuccess = reply?.headers.get(headerKey.resultSuccess)?.[0] === 1
  return { isSuccess, text: Buffer.from(reply?.body ?? []).toString() }
}

test('a client of the family names what it wants, under old names too, and is told of it', async () => {
  const one = new Client(root.token ?? '')
  await eventually(() => expect(one.head).toContain('s3pPLMBiTxaQ9kYGzzhZRbK+xOo='))
  const subscriptions = [
    { type: 'entityChange', options: { include: ['services'] } },
    { type: 'fabric.routers' },
    { type: 'usage', options: { version: 3 } },
  ]
  one.ask({ format: 'json', subscriptions })
  expect(await answerTo(one)).toEqual({ isSuccess: true, text: 'success' })
  await newIdentity(root, 'not-asked-for')
  await newService(root, 'over-a-socket')
  controller.events.tell({ kind: 'router', routerId: 'r1', isOnline: false })
  await eventually(() => expect(one.events).toHaveLength(3))
  expect(one.events.map((event) => event['eventType'] ?? event['event_type'])).toEqual([
    ...['created', 'committed', 'router-offline'],
  ])
  one.frame(0x89, Buffer.from('ping'))
  one.socket.end()
  await eventually(() => expect(one.isClosed).toBe(true))
})

test('what is no request is answered, or ends the socket', async () => {
  for (const body of ['nonsense', '[]', { format: 'xml' }, { format: 'json', subscriptions: 1 }]) {
    const one = new Client(root.token ?? '')
    one.ask(body)
    expect((await answerTo(one)).isSuccess).toBe(false)
    one.socket.destroy()
  }
  const unknown = new Client(root.token ?? '')
  unknown.ask({ format: 'json', subscriptions: [{ type: 'nonsense' }] })
  expect((await answerTo(unknown)).text).toContain("invalid event type 'nonsense'")
  for (const first of [0x81, 0x80, 0xc2, 0x02 | 0x40, 0x09]) {
    const one = new Client(root.token ?? '')
    one.frame(first, Buffer.from('text'))
    await eventually(() => expect(one.isClosed).toBe(true))
  }
})

test('whoever has no session, or not the permission, gets no socket; and nobody gets one elsewhere', async () => {
  const nobody = new Client('forged')
  await eventually(() => expect(nobody.head).toContain('HTTP/1.1 401'))
  const alice = new Client(sessionOf('alice-id').token ?? '')
  await eventually(() => expect(alice.head).toContain('HTTP/1.1 401'))
  const elsewhere = new Client(root.token ?? '', '/fabric/v1/version')
  await eventually(() => expect(elsewhere.head).toContain('HTTP/1.1 '))
  expect(elsewhere.head).not.toContain('101')
})

test('a watcher is refused what is for administrators, and the socket ends with its session', async () => {
  const id = await newIdentity(root, 'socket-watcher', { permissions: ['ops.read'] })
  const watcher = sessionOf(id)
  const refused = new Client(watcher.token ?? '')
  refused.ask({ format: 'json', subscriptions: [{ type: 'entityChange' }] })
  expect(await answerTo(refused)).toMatchObject({ isSuccess: false })
  const one = new Client(watcher.token ?? '')
  one.ask({ format: 'json', subscriptions: [{ type: 'router' }] })
  expect((await answerTo(one)).isSuccess).toBe(true)
  await watcher.call('DELETE', '/edge/management/v1/current-api-session')
  await eventually(() => expect(one.isClosed).toBe(true))
  expect(one.closeReason).toBe('the session has ended')
})
