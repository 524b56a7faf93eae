import { test } from 'vitest'

import { attackedListener, until } from './support/listener.ts'

// The attack: an attacker without credentials sends hundreds of requests in one packet and reads no
// response, so that the controller processes all of them and buffers the responses of one
// connection.

const { accepted, connect } = await attackedListener({ pipelinedRequestsMax: 8 })
const narrow = await attackedListener({ unsentBytesMax: 64 * 1024 })
const get = 'GET /edge/client/v1/version HTTP/1.1\r\nhost: x\r\n\r\n'

test('a connection that sends many requests without reading a response is closed', async () => {
  const socket = await connect()
  socket.pause()
  socket.write('GET /edge/management/v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(40))
  await until(() => accepted.at(-1)?.destroyed === true, 2000)
})

test('a connection whose pending requests exceed the limit of its source is closed', async () => {
  const socket = await narrow.connect()
  socket.pause()
  socket.write(get.repeat(8))
  await until(() => narrow.accepted.at(-1)?.destroyed === true, 2000)
})
