import { expect, test } from 'vitest'

import { management } from '../api/support/caller.ts'
import { made } from '../api/support/network.ts'
import { attackedListener, until } from './support/listener.ts'

// An attacker reads a little now and then, so that large answers never stall and never end.

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
/** Far more than the kernel takes at a time. */
const answerBytes = 8_000_000
const count = 4
/** One of them takes twice the time that it may. */
const bytesPerMs = Math.floor(answerBytes / (2 * answerStallMs))
const TICK_MS = 10

test('a connection is closed if its client reads a response too slowly', async () => {
  const socket = await connect()
  socket.pause()
  const get = `GET ${path} HTTP/1.1\r\nhost: x\r\nnet-session: ${root.token}\r\n\r\n`
  socket.write(get.repeat(count))
  let length = 0
  // A tick that comes late takes no more than others: caught up with, a pause of a busy machine
  // would be fast reading.
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
