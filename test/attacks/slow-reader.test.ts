import { expect, test } from 'vitest'

import { management } from '../api/support/caller.ts'
import { made } from '../api/support/network.ts'
import { attackedListener, until } from './support/listener.ts'

// The attack: an attacker reads a little from time to time, so that large responses never stall and
// never end.

const answerStallMs = 2000
const { accepted, connect, root } = await attackedListener({
  answerStallMs,
  answerBytesPerSecondMin: 100 * 1024 * 1024,
})
const configTypeId = await made(root, `${management}/config-types`, { name: 'of long data' })
for (let at = 0; at < 20; at += 1) {
  const data = { long: 'x'.repeat(400_000) }
  await made(root, `${management}/configs`, { name: `long ${at}`, configTypeId, data })
}
const path = `${management}/configs?filter=${encodeURIComponent('name contains "long"')}&limit=20`
/** Far more than the buffers of the kernel hold. */
const answerBytes = 8_000_000
const count = 4
/** At this rate, a response takes twice the permitted time. */
const bytesPerMs = Math.floor(answerBytes / (2 * answerStallMs))
const TICK_MS = 10

test('a connection is closed if its client reads a response too slowly', async () => {
  const socket = await connect()
  socket.pause()
  const get = `GET ${path} HTTP/1.1\r\nhost: x\r\nnet-session: ${root.token}\r\n\r\n`
  socket.write(get.repeat(count))
  let length = 0
  // A late tick reads no more than others: if it caught up, a pause of a busy machine would become
  // fast reading.
  const reading = setInterval(() => {
    const chunk = (socket.read(TICK_MS * bytesPerMs) ?? socket.read()) as Buffer | null
    length += chunk?.length ?? 0
  }, TICK_MS)
  try {
    await until(() => accepted.at(-1)?.destroyed === true)
    expect(length).toBeGreaterThan(answerBytes / 4)
    expect(length).toBeLessThan(count * answerBytes)
  } finally {
    clearInterval(reading)
  }
})
