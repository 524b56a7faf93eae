import { once } from 'node:events'
import { expect, test } from 'vitest'

import { management } from '../api/support/caller.ts'
import { eventually } from '../support/eventually.ts'
import { attackedListener, until } from './support/listener.ts'
import { stuckConnection } from './support/unread.ts'

// The attack: an attacker opens many connections, sends many requests in one packet on each, for
// responses that are sent as one piece, and reads none. Each response is within its limits, and so
// is each connection.

/** Enough to exceed the buffers of the kernel for one connection. */
const REQUESTS = 8
const path = `${management}/openapi.json`
const unsentBytesMax = 16 * 1024 * 1024
const { accepted, connect, controller, root } = await attackedListener({
  answerPieceBytes: 8 * 1024 * 1024,
  unsentBytesMax,
  answerQuietMs: 1000,
  // No connection closes for another reason during the test.
  answerStallMs: 600_000,
})
const get = `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

/** Bytes of responses that wait to be sent, without the copies that TLS keeps. */
function heldBytes(): number {
  return accepted.reduce((sum, { writableLength }) => sum + writableLength, 0)
}

async function firstLine(request: string): Promise<string> {
  const socket = await connect()
  socket.write(request)
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return chunk.toString('latin1').split('\r\n')[0] ?? ''
}

test('a request is not started if the client has not read the previous responses on its connection', async () => {
  const body = JSON.stringify({ name: 'behind', encryptionRequired: true })
  const create =
    `POST ${management}/services HTTP/1.1\r\nhost: x\r\nnet-session: ${root.token}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  const created = async (): Promise<number> => {
    const { body } = await root.get(`${management}/services?filter=name%3D%22behind%22`)
    return (body.data as readonly unknown[]).length
  }
  const socket = await connect()
  socket.pause()
  socket.write(get.repeat(REQUESTS) + create)
  await until(() => heldBytes() > 0)
  expect(await created()).toBe(0)
  socket.resume()
  await eventually(async () => expect(await created()).toBe(1))
  socket.destroy()
})

test('the unsent responses of many connections are limited in total: at the limit, connections whose clients read nothing are closed, and other clients still get responses', async () => {
  const { payload } = await controller.app.inject(path)
  const stuck = (): number =>
    accepted.filter(({ destroyed, writableLength }) => !destroyed && writableLength > 0).length
  // Continues until one source uses all that it may. Each response counts twice, because TLS keeps
  // a copy.
  const count = Math.ceil((0.75 * unsentBytesMax) / (2 * payload.length))
  for (let at = 0; at < count; at += 1) await stuckConnection({ accepted, connect }, get)
  expect(heldBytes()).toBeLessThan(unsentBytesMax)
  await eventually(async () => expect(await firstLine(get)).toBe('HTTP/1.1 200 OK'))
  expect(stuck()).toBeLessThan(count)
})
