import { afterEach, beforeEach, expect, test } from 'vitest'

import { EdgeBench, eventually, madeCircuit, serviceToken } from '../router/edge/support.ts'

// The attack: a client reads nothing, or writes into circuits that accept nothing, so that its
// router buffers everything.

let bench: EdgeBench
beforeEach(async () => {
  bench = await EdgeBench.open()
})
afterEach(() => bench.close())

const CIRCUITS = 16
const MIB = 1024 * 1024

test('Data that a client does not read is held back at the other endpoints of the client’s circuits', async () => {
  const client = await bench.admitted('mallory')
  for (let id = 1; id <= CIRCUITS; id += 1) {
    bench.controller.circuits = () => madeCircuit(`c${id}`)
    await client.request(60_783, id, serviceToken('s1'))
  }
  await eventually(() => bench.circuits.ends).toHaveLength(CIRCUITS)
  client.socket.pause()
  const piece = new Uint8Array(256 * 1024)
  for (let sent = 0; sent < 32; sent += 1) for (const end of bench.circuits.ends) end.arrive(piece)
  const left = bench.circuits.ends.map(({ pendingCount }) => pendingCount)
  // One payload of each circuit is in flight; the socket has a separate buffer.
  expect(left.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(CIRCUITS * 32 - 80)
  expect(bench.edge.channels, 'a slow client stays connected').toBe(1)
})

test('Data that a circuit does not accept is held back in the client', async () => {
  const client = await bench.admitted('mallory')
  bench.controller.circuits = () => madeCircuit('c1')
  await client.request(60_783, 1, serviceToken('s1'))
  await eventually(() => bench.circuits.ends).toHaveLength(1)
  const end = bench.circuits.end('c1')
  end.takes = false
  for (let sent = 0; sent < 64; sent += 1) client.send(60_786, 1, new Uint8Array(64 * 1024))
  let isRead = false
  const behind = client.channel.request({ contentType: 3 }, 20_000).then(() => {
    isRead = true
  })
  const other = await bench.admitted('ann')
  await other.channel.request({ contentType: 3 })
  expect(isRead, 'all of it was read').toBe(false)
  expect(64 * 64 * 1024).toBeGreaterThan(2 * MIB)
  end.takes = true
  end.application.onWritable()
  await behind
})
