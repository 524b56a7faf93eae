import { expect, test } from 'vitest'

import { attackedListener, until } from './support/listener.ts'

// The attack: an attacker without credentials requests large documents and never reads the
// responses, so that encrypted copies of them fill the memory of the controller.

const answerPieceBytes = 16 * 1024
/** Bytes that Node.js writes to a socket before it waits for `drain`. */
const SOCKET_BYTES = 64 * 1024
const { accepted, connect, connections, version, controller } = await attackedListener({
  answerPieceBytes,
  answerStallMs: 1500,
  // No client is closed for reading slowly, only for reading nothing.
  answerBytesPerSecondMin: 1,
})
const get = 'GET /edge/management/v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'
const { body } = await controller.app.inject('/edge/management/v1/openapi.json')
const documentBytes = Buffer.byteLength(body)

test('a response that the client does not read uses little memory, and its connection is closed after a timeout', async () => {
  // The kernel buffers up to 4 MiB for each connection before the process buffers anything; six
  // documents are more than that.
  expect(6 * documentBytes).toBeGreaterThan(6 * 1024 * 1024)
  for (let at = 0; at < 5; at += 1) {
    const socket = await connect()
    socket.pause()
    socket.write(get.repeat(6))
  }
  // On a busy machine, the first connection closes before the last one has its response.
  await until(() => accepted.every((one) => one.writableLength > 0 || one.destroyed))
  const heldBytes = accepted.reduce((sum, { writableLength }) => sum + writableLength, 0)
  expect(heldBytes).toBeLessThan(accepted.length * (SOCKET_BYTES + answerPieceBytes))
  await until(async () => (await connections()) === 0)
  expect(await version()).toMatch(/^HTTP\/1\.1 200 OK/)
})

test('a client that reads slowly gets the whole response', async () => {
  const socket = await connect()
  socket.pause()
  socket.write(get.replace('host: x', 'host: x\r\nconnection: close'))
  let length = 0
  const reading = setInterval(() => {
    length += (socket.read() as Buffer | null)?.length ?? 0
  }, 5)
  try {
    await until(() => length >= documentBytes)
  } finally {
    clearInterval(reading)
  }
})
