import { once } from 'node:events'
import { expect, test } from 'vitest'

import { attackedListener } from './support/listener.ts'
import { stuckConnection } from './support/unread.ts'

// The attack: an attacker without credentials requests many responses and reads none. Each response
// is within its limits, but all together need too much memory.

const answerPieceBytes = 16 * 1024
const { accepted, connect } = await attackedListener({
  answerPieceBytes,
  unsentBytesMax: 8 * answerPieceBytes,
  // None of the connections is closed during the test.
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
  // Three quarters of the limit: for each connection, one piece and the copy of it that TLS keeps.
  for (let at = 0; at < 3; at += 1) await stuckConnection({ accepted, connect }, get)
  expect(await firstLine(get)).toBe('HTTP/1.1 429 Too Many Requests')
  expect(await firstLine(small)).toBe('HTTP/1.1 200 OK')
})
