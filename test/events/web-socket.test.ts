import { fromBinary } from '@bufbuild/protobuf'
import { afterAll, expect, test } from 'vitest'

import { ValidationStartSchema } from '../../proto/gen/management_pb.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { newIdentity, newService } from '../api/support/network.ts'
import { eventually } from '../support/eventually.ts'
import { answerTo, WebSocketClient } from './web-socket-client.ts'

const { controller, root, sessionOf } = await controllerForFile()
await controller.app.listen({ host: '127.0.0.1', port: 0 })
const { port } = controller.app.server.address() as { port: number }
const sockets: WebSocketClient[] = []
afterAll(() => {
  for (const one of sockets) one.socket.destroy()
})

function opened(token: string | null, path?: string): WebSocketClient {
  const one = new WebSocketClient({ port, host: '127.0.0.1' }, token, path)
  sockets.push(one)
  return one
}

test('an OpenZiti client can subscribe to events, also under the names of earlier OpenZiti versions, and receives the events', async () => {
  const one = opened(root.token ?? '')
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
  controller.events.publishFact({ kind: 'router', routerId: 'r1', isOnline: false })
  await eventually(() => expect(one.events).toHaveLength(3))
  expect(one.events.map((event) => event['eventType'] ?? event['event_type'])).toEqual([
    'created',
    'committed',
    'router-offline',
  ])
  one.frame(0x89, Buffer.from('ping'))
  one.socket.end()
  await eventually(() => expect(one.isClosed).toBe(true))
})

test('an invalid request on an event web socket gets an error, and an invalid frame closes the web socket', async () => {
  for (const body of ['nonsense', '[]', { format: 'xml' }, { format: 'json', subscriptions: 1 }]) {
    const one = opened(root.token ?? '')
    one.ask(body)
    expect((await answerTo(one)).isSuccess).toBe(false)
    one.socket.destroy()
  }
  const unknown = opened(root.token ?? '')
  unknown.ask({ format: 'json', subscriptions: [{ type: 'nonsense' }] })
  expect((await answerTo(unknown)).text).toContain("invalid event type 'nonsense'")
  for (const first of [0x81, 0x80, 0xc2, 0x02 | 0x40, 0x09]) {
    const one = opened(root.token ?? '')
    one.frame(first, Buffer.from('text'))
    await eventually(() => expect(one.isClosed).toBe(true))
  }
})

test('a request for an unsupported validation is refused in the format that OpenZiti’s CLI expects', async () => {
  for (const kind of [10_106, 10_109, 10_112, 10_115, 10_122]) {
    const one = opened(root.token ?? '')
    one.ask('', kind)
    await eventually(() => expect(one.messages).toHaveLength(1))
    const [answer] = one.messages
    expect(answer?.contentType).toBe(kind + 1)
    const { success, message } = fromBinary(ValidationStartSchema, answer?.body ?? new Uint8Array())
    expect(success).toBe(false)
    expect(message).toContain('not offered')
    one.socket.destroy()
  }
})

test('an event web socket requires a session of an identity that may read events, and the path for events', async () => {
  const nobody = opened('forged')
  await eventually(() => expect(nobody.head).toContain('HTTP/1.1 401'))
  const bare = opened(null)
  await eventually(() => expect(bare.head).toContain('HTTP/1.1 401'))
  const alice = opened(sessionOf('alice-id').token ?? '')
  await eventually(() => expect(alice.head).toContain('HTTP/1.1 401'))
  const elsewhere = opened(root.token ?? '', '/fabric/v1/version')
  await eventually(() => expect(elsewhere.head).toContain('HTTP/1.1 '))
  expect(elsewhere.head).not.toContain('101')
})

test('a caller who is not an administrator cannot subscribe to events for administrators, and its web socket closes when its session ends', async () => {
  const id = await newIdentity(root, 'socket-watcher', { permissions: ['ops.read'] })
  const watcher = sessionOf(id)
  const refused = opened(watcher.token ?? '')
  refused.ask({ format: 'json', subscriptions: [{ type: 'entityChange' }] })
  expect(await answerTo(refused)).toMatchObject({ isSuccess: false })
  const one = opened(watcher.token ?? '')
  one.ask({ format: 'json', subscriptions: [{ type: 'router' }] })
  expect((await answerTo(one)).isSuccess).toBe(true)
  await watcher.call('DELETE', '/edge/management/v1/current-api-session')
  await eventually(() => expect(one.isClosed).toBe(true))
  expect(one.closeReason).toBe('the session has ended')
})
