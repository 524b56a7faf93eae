import { afterEach, beforeEach, expect, test } from 'vitest'

import { encodeInt32 } from '../../src/channel/headers.ts'
import { EdgeBench, eventually, madeCircuit, serviceToken } from '../router/edge/support.ts'

// The attack: the other endpoint of a circuit sends a trace response without a request, with the
// number of another request of the client, so that the client mistakes it for the response of its
// router.

let bench: EdgeBench
beforeEach(async () => {
  bench = await EdgeBench.open()
})
afterEach(() => bench.close())

test('a traceroute response is forwarded only for a pending traceroute request, and only once', async () => {
  const client = await bench.admitted('ann')
  bench.controller.circuits = () => madeCircuit('c7')
  await client.request(60_783, 7, serviceToken('s1'))
  await eventually(() => bench.circuits.ends).toHaveLength(1)
  const end = bench.circuits.end('c7')
  const asked = client.request(60_796, 7, '', [[1016, encodeInt32(3)]])
  await eventually(() => end.traced).toHaveLength(1)
  const userValue = end.traced[0]?.userValue ?? 0
  const answer = { hopType: 'forwarder', hopId: 'r2', hops: 0, timestamp: 0n, error: '' }
  for (const number of [userValue + 1, userValue, userValue]) {
    end.application.onTraced?.({ ...answer, userValue: number })
  }
  expect((await asked).contentType).toBe(60_797)
  end.arrive('after')
  await eventually(() => client.textsOf(7)).toEqual(['after'])
  // The client receives a response without a request as a separate message.
  expect(client.ofType(60_797, 7)).toEqual([])
})
