import { afterEach, beforeEach, expect, test } from 'vitest'

import { encodeFlag, encodeInt32, encodeText } from '../../src/channel/headers.ts'
import { EdgeBench, eventually, madeCircuit, serviceToken } from '../router/edge/support.ts'

// The attack: a client with a valid session uses IDs of connections, circuits and listeners of
// another client at the same router.

let bench: EdgeBench
beforeEach(async () => {
  bench = await EdgeBench.open()
})
afterEach(() => bench.close())

test('A client cannot access connections or circuits of another client by using their IDs', async () => {
  const [ann, mallory] = [await bench.admitted('ann'), await bench.admitted('mallory')]
  bench.controller.circuits = () => madeCircuit('c1')
  await ann.request(60_783, 7, serviceToken('s1'))
  bench.controller.circuits = () => madeCircuit('c2')
  await ann.request(60_783, 8, serviceToken('s1'), [[1028, encodeFlag(true)]])
  await eventually(() => bench.circuits.ends).toHaveLength(1)
  mallory.send(60_786, 7, 'injected')
  mallory.send(60_785, 7)
  const headers = new Map([
    [2256, encodeText('c2')],
    [1000, encodeInt32(8)],
  ])
  mallory.channel.send({ contentType: 1100, headers })
  mallory.channel.send({ contentType: 1103, body: encodeText('c2') })
  await mallory.channel.request({ contentType: 3 })
  expect(bench.circuits.end('c1').sent).toEqual([])
  expect(bench.circuits.end('c1').isClosed).toBe(false)
  expect(bench.circuits.entered).toEqual([])
  expect(bench.circuits.left).toEqual([])
})

test('A client cannot take over, unbind or change a listener of another client, even with that client’s service session', async () => {
  const [ann, mallory] = [await bench.admitted('ann'), await bench.admitted('mallory')]
  const token = serviceToken('bind1')
  const listener = [[1021, encodeText('listener')]] as const
  await ann.request(60_790, 3, token, listener)
  await eventually(() => bench.controller.ofType(20_216)).toHaveLength(1)
  const [id] = bench.edge.terminatorIds
  mallory.send(60_791, 3, token)
  mallory.send(60_794, 3, token, [[1004, Uint8Array.of(0xff, 0xff)]])
  await mallory.request(60_790, 3, token, listener)
  await mallory.request(60_790, 4, token)
  expect(bench.controller.ofType(20_209)).toEqual([])
  expect(bench.edge.terminatorIds, 'of Ann, and what controllers are to judge').toContain(id)
  const dialed = bench.edge.dialer.dial(
    {
      circuit: { id: 'c1', address: 'o', owner: bench.controller.connection, isTerminator: true },
      dialedBy: 'client mallory',
      destination: id ?? '',
      peerData: new Map(),
      timeoutMs: 200,
    },
    new AbortController().signal,
  )
  await expect(dialed).rejects.toThrow('did not answer')
  await eventually(() => ann.ofType(60_787)).toHaveLength(1)
  expect(mallory.ofType(60_787)).toEqual([])
})
