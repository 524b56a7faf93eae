import { once } from 'node:events'
import { expect, test } from 'vitest'

import { attackedListener, until } from './support/listener.ts'

// An attacker without credentials has many answers made and reads none: each alone is within its bounds, all together are not.

const answerPieceBytes = 16 * 1024
const { accepted, connect } = await attackedListener({
  answerPieceBytes,
  unsentBytesMax: 32 * answerPieceBytes,
})
const get = 'GET /edge/management/v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'
const small = 'GET /edge/client/v1/version HTTP/1.1\r\nhost: x\r\n\r\n'

async function firstLine(request: string): Promise<string> {
  const socket = await connect()
  socket.write(request)
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString('latin1').split('\r\n')[0] ?? ''
}

test('large answers to a source that reads none are refused, small ones are not', async () => {
  for (let at = 0; at < 5; at += 1) {
    const socket = await connect()
    socket.pause()
    socket.write(get.repeat(6))
  }
  await until(() => accepted.every(({ bytesWritten }) => bytesWritten > 0))
  expect(await firstLine(get)).toBe('HTTP/1.1 429 Too Many Requests')
  expect(await firstLine(small)).toBe('HTTP/1.1 200 OK')
})
