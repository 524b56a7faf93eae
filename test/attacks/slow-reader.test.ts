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
const bytesPerMs = answerBytes / (2 * answerStallMs)

test('an answer that is read too slowly ends with its connection', async () => {
  const socket = await connect()
  socket.pause()
  const get = `GET ${path} HTTP/1.1\r\nhost: x\r\nnet-session: ${root.token}\r\n\r\n`
  socket.write(get.repeat(count))
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
    expect(length).toBeGreaterThan(answerBytes / 4)
    expect(length).toBeLessThan(count * answerBytes)
  } finally {
    clearInterval(reading)
  }
})
