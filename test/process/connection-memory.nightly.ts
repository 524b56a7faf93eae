import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { listenerNames, ListenersUnderConnections } from './support/listeners-under-connections.ts'

// Goal: a closed connection leaves nothing in memory, whichever certificates its client presented.
// Method: a real controller and a real router; the test makes both collect their garbage before
// each measurement of their memory. bench/connection-memory.ts does the same with 20,000
// connections.

const MIB = 1024 * 1024
const WARM_UP = 600
const CONNECTIONS = 600
/**
 * Half of the certificates that these connections present are 38 KB long. An earlier version kept
 * 140 KB in memory for each of them.
 */
const GROWTH_BYTES_MAX = 14 * MIB

let network: ListenersUnderConnections

beforeAll(async () => {
  network = await ListenersUnderConnections.start()
})
afterAll(async () => {
  await network[Symbol.asyncDispose]()
})

describe.each(listenerNames)('The TLS listener for %s', (name) => {
  test('frees the memory of closed connections whose clients presented certificate chains of different lengths and sizes', async () => {
    await network.connect(name, ['single', 'large', 'enrolled'], WARM_UP)
    const before = await network.residentBytes(name)
    const completed = await network.connect(name, ['large', 'enrolled'], CONNECTIONS)
    const growth = (await network.residentBytes(name)) - before
    expect(completed).toBe(CONNECTIONS)
    expect(growth).toBeLessThan(GROWTH_BYTES_MAX)
  })
})
