import type { Socket } from 'node:net'
import { afterAll, expect, test } from 'vitest'

import { controllerForFile } from '../api/support/for-file.ts'
import { WebSocketClient } from '../events/web-socket-client.ts'
import { eventually } from '../support/eventually.ts'

// The attack: a caller with a session sends pings on a web socket of events and reads nothing, so
// that the memory of the controller fills with pongs.

const PING_BYTES = 120
const FRAMES = 1000
const ROUNDS = 400
/** More bytes than the operating system buffers for a connection that is not read. */
const SENT_BYTES = ROUNDS * FRAMES * (6 + PING_BYTES)
const HELD_BYTES_MAX = 1024 * 1024

const { controller, root } = await controllerForFile()
await controller.app.listen({ host: '127.0.0.1', port: 0 })
const { port } = controller.app.server.address() as { port: number }
let client: WebSocketClient | null = null
afterAll(() => client?.socket.destroy())

test('the unread responses to a client that sends pings and reads nothing occupy less than 1 MiB', async () => {
  const far: Socket[] = []
  controller.app.server.on('connection', (socket: Socket) => far.push(socket))
  const one = new WebSocketClient({ port, host: '127.0.0.1' }, root.token ?? '')
  client = one
  await eventually(() => expect(one.head).toContain('101 Switching Protocols'))
  one.socket.pause()
  const frame = Buffer.alloc(6 + PING_BYTES)
  frame.set([0x89, 0x80 | PING_BYTES])
  const frames = Buffer.concat(Array.from({ length: FRAMES }, () => frame))
  for (let round = 0; round < ROUNDS; round += 1) {
    if (!one.socket.write(frames)) await new Promise((done) => one.socket.once('drain', done))
  }
  await eventually(() => expect(far[0]?.bytesRead).toBeGreaterThan(SENT_BYTES))
  expect(far[0]?.writableLength).toBeLessThan(HELD_BYTES_MAX)
})
