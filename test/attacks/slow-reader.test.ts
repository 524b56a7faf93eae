import { expect, test } from 'vitest'

import { attackedListener, until } from './support/listener.ts'

// An attacker reads a little now and then, so that large answers never stall and never end.

const { accepted, connect, controller } = await attackedListener({
  answerStallMs: 1000,
  answerBytesPerSecondMin: 100 * 1024 * 1024,
})
const { body } = await controller.app.inject('/edge/management/v1/openapi.json')
const count = 40
/** One of them takes twice the time that it may. */
const bytesPerMs = body.length / 2000

test('an answer that is read too slowly ends with its connection', async () => {
  const socket = await connect()
  socket.pause()
  socket.write('GET /edge/management/v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(count))
  let length = 0
  const fromMs = performance.now()
  const reading = setInterval(() => {
    const bytes = Math.floor((performance.now() - fromMs) * bytesPerMs) - length
    if (bytes <= 0) return
    const chunk = (socket.read(bytes) ?? socket.read()) as Buffer | null
    length += chunk?.length ?? 0
  }, 10)
  try {
    await until(() => accepted.at(-1)?.destroyed === true)
    expect(length).toBeLessThan(count * body.length)
  } finally {
    clearInterval(reading)
  }
})
