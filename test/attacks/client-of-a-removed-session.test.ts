import { afterEach, beforeEach, expect, test } from 'vitest'

import { EdgeBench, eventually, madeCircuit, serviceToken } from '../router/edge/support.ts'

// The attack: a client whose session has ended continues to use its channel, circuits and
// terminators.

let bench: EdgeBench
beforeEach(async () => {
  bench = await EdgeBench.open()
})
afterEach(() => bench.close())

test('A client loses its channel, circuits and terminators when its API session is removed', async () => {
  const person = await bench.person('mallory')
  bench.controller.tellSessions([person])
  const client = await bench.connect(person)
  bench.controller.circuits = () => madeCircuit('c1')
  await client.request(60_783, 7, serviceToken('dial1'))
  await client.request(60_790, 8, serviceToken('bind1'))
  await eventually(() => bench.circuits.ends).toHaveLength(1)
  bench.controller.removeSession(person)
  expect(bench.edge.channels).toBe(0)
  expect(bench.circuits.end('c1').isClosed).toBe(true)
  expect(bench.edge.terminatorIds).toEqual([])
  expect((await bench.connect(person)).isAdmitted, 'again').toBe(false)
})

test('A client loses its channel when its session ended while the router was disconnected from the controller', async () => {
  const person = await bench.person('mallory')
  bench.controller.tellSessions([person])
  await bench.connect(person)
  bench.controller.tellSessions([], { isFull: true })
  expect(bench.edge.channels).toBe(0)
})

test('A client loses its circuit and its terminator, but keeps its channel, when their service sessions are removed', async () => {
  const client = await bench.admitted('mallory')
  bench.controller.circuits = () => madeCircuit('c1')
  await client.request(60_783, 7, serviceToken('dial1'))
  await client.request(60_790, 8, serviceToken('bind1'))
  await eventually(() => bench.circuits.ends).toHaveLength(1)
  bench.controller.endServiceSession('dial1', 'dial1')
  bench.controller.endServiceSession('bind1', 'bind1')
  expect(bench.circuits.end('c1').isClosed).toBe(true)
  expect(bench.edge.terminatorIds).toEqual([])
  expect(bench.edge.channels).toBe(1)
})
