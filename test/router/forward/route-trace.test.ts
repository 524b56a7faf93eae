import { afterEach, beforeEach, expect, test } from 'vitest'

import { encodeInt32 } from '../../../src/channel/headers.ts'
import type { TraceResponse } from '../../../src/channel/messages/route-trace.ts'
import { eventually } from '../support.ts'
import { hostAt, Peer } from './peer.ts'
import { endsOf, linked, type TestLink, TestController, TestRouter } from './support.ts'

// Goal: a trace shows the route of a circuit hop by hop, up to its other end. Method: three routers
// in a line, with a circuit endpoint at each side.

class Tracer extends Peer {
  readonly answers: TraceResponse[] = []

  onTraced(answer: TraceResponse): void {
    this.answers.push(answer)
  }
}

const circuit = endsOf('circuit1')
const controller = new TestController()
const routers: TestRouter[] = []
let links: TestLink[] = []
let client: Tracer
beforeEach(async () => {
  for (const id of ['r1', 'r2', 'r3']) routers.push(new TestRouter(id))
  for (const router of routers) controller.connect(router)
  const [one, two, three] = routers as [TestRouter, TestRouter, TestRouter]
  links = [linked(one, two, 'l1'), linked(two, three, 'l2')]
  hostAt(three.forwarder)
  await controller.lay(circuit, routers, links)
  client = new Tracer()
  const place = { id: circuit.id, address: circuit.ingress, isTerminator: false }
  client.end = one.forwarder.open({ ...place, owner: controller.connectionOf(one) }, client)
})
afterEach(() => {
  for (const { forwarder } of routers.splice(0)) forwarder.stop()
})

test('each router on the path responds to a route trace for its own hop, and the last circuit endpoint for all further hops', async () => {
  const asked = [1, 2, 3, 4, 9]
  for (const hops of asked) client.end?.trace?.({ hops, timestamp: 77n, userValue: 100 + hops })
  await eventually(() => client.answers).toHaveLength(asked.length)
  const shown = client.answers
    .toSorted((one, other) => one.userValue - other.userValue)
    .map(({ hopType, hopId, hops, userValue }) => [userValue, hopType, hopId, hops])
  expect(shown).toEqual([
    [101, 'forwarder', 'r1', 0],
    [102, 'forwarder', 'r2', 0],
    [103, 'forwarder', 'r3', 0],
    [104, 'xgress', '', 0],
    [109, 'xgress', '', 5],
  ])
  expect(client.answers.every(({ timestamp }) => timestamp === 77n)).toBe(true)
})

test('a route trace with zero hops or a negative number of hops gets a response from the last circuit endpoint', async () => {
  for (const hops of [0, -1]) client.end?.trace?.({ hops, timestamp: 0n, userValue: 1 })
  await eventually(() => client.answers.map(({ hopType }) => hopType)).toEqual(['xgress', 'xgress'])
})

test('a router ignores a route trace request over a link that the circuit does not use', async () => {
  const thief = new TestRouter('r4')
  routers.push(thief)
  const seen: number[] = []
  thief.forwarder.onLinkMessage = (_, { contentType }) => seen.push(contentType)
  const two = routers[1] as TestRouter
  const headers = new Map([[20, encodeInt32(1)]])
  const body = Buffer.from(`\u0001${circuit.id}`)
  linked(thief, two, 'l9').ofFirst.trySend({ contentType: 1102, headers, body }, 1024)
  await eventually(() => two.forwarder.figures()['forwarder.faults']).toBe(1)
  expect(seen).toEqual([])
})
