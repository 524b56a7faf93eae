import { once } from 'node:events'
import { expect, test } from 'vitest'

import { attackedListener } from './support/listener.ts'
import { stuckConnection } from './support/unread.ts'

// An attacker without credentials has many answers made and reads none: each alone is within its
// bounds, all together are not.

const answerPieceBytes = 16 * 1024
const { accepted, connect } = await attackedListener({
  answerPieceBytes,
  unsentBytesMax: 8 * answerPieceBytes,
  // None of them is closed meanwhile.
  answerQuietMs: 60_000,
})
const get = 'GET /edge/management/v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'
const small = 'GET /edge/client/v1/version HTTP/1.1\r\nhost: x\r\n\r\n'

async function firstLine(request: string): Promise<string> {
  const socket = await connect()
  socket.write(request)
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString('latin1').split('\r\n')[0] ?? ''
}

test('a source address that does not read its responses gets no further large responses, but still gets small ones', async () => {
  // Three quarters of the room: one piece of each, and the copy that TLS has of it.
  for (let at = 0; at < 3; at += 1) await stuckConnection({ accepted, connect }, get)
  expect(await firstLine(get)).toBe('HTTP/1.1 429 Too Many Requests')
  expect(await firstLine(small)).toBe('HTTP/1.1 200 OK')
})
