import { afterEach, beforeEach, expect, test } from 'vitest'

import { encodeFlag, encodeInt32, readInt32, encodeText } from '../../../src/channel/headers.ts'
import { payloadFlag } from '../../../src/channel/messages/payload.ts'
import {
  EdgeBench,
  eventually,
  madeCircuit,
  serviceToken,
  type TestClient,
  textOf,
} from './support.ts'

// Goal: if a client implements the end of its circuit itself, the router forwards its frames into
// that circuit, and into no other.

const FROM_TERMINATOR = payloadFlag.fromTerminator

let bench: EdgeBench
let client: TestClient
beforeEach(async () => {
  bench = await EdgeBench.open()
  client = await bench.admitted('ann')
})
afterEach(() => bench.close())

async function dialed(who: TestClient, id: number, circuitId: string): Promise<void> {
  bench.controller.circuits = () => madeCircuit(circuitId)
  const answer = await who.request(60_783, id, serviceToken('s1'), [[1028, encodeFlag(true)]])
  expect(answer.contentType).toBe(60_784)
  expect(answer.headers.get(1028)).toEqual(encodeFlag(true))
  expect([textOf(answer, 1029), textOf(answer, 1030)]).toEqual(['ctrl1', `in-${circuitId}`])
}

test('Frames that a client creates itself enter its circuit, and frames from the circuit reach the client', async () => {
  await dialed(client, 7, 'c1')
  const [attached] = bench.circuits.attached
  expect(attached?.circuit).toMatchObject({ id: 'c1', isTerminator: false })
  expect(bench.circuits.ends).toEqual([])
  for (const contentType of [1100, 1101, 1102]) {
    client.channel.send({ contentType, headers: new Map([[2256, encodeText('c1')]]) })
  }
  await eventually(() => bench.circuits.entered.map(({ message }) => message.contentType)).toEqual([
    1100, 1101, 1102,
  ])
  const message = {
    contentType: 1100,
    sequence: 4,
    headers: new Map([[2256, encodeText('c1')]]),
    body: encodeText('payload'),
  }
  expect(attached?.destination.forward(message)).toBe(true)
  await eventually(() => client.ofType(1100)).toHaveLength(1)
  const [told] = client.ofType(1100)
  expect(readInt32(told?.headers ?? new Map(), 1000)).toBe(7)
  expect(told?.body).toEqual(encodeText('payload'))
})

test('A client that dials a service that it also hosts has both endpoints of the circuit', async () => {
  const inClient = [1028, encodeFlag(true)] as const
  const isRouterGivingIds = [1012, encodeFlag(true)] as const
  await client.request(60_790, 5, serviceToken('bind1'), [isRouterGivingIds, inClient])
  await eventually(() => bench.edge.terminatorIds).toHaveLength(1)
  const [destination = ''] = bench.edge.terminatorIds
  const circuit = { id: 'c1', address: 'out-c1', owner: bench.controller.connection }
  let hostedId = 0
  client.onMessage = (message) => {
    if (message.contentType !== 60_787) return
    hostedId = readInt32(message.headers, 1012) ?? 0
    client.reply(message, 60_788, encodeInt32(hostedId))
  }
  await bench.edge.dialer.dial(
    {
      circuit: { ...circuit, isTerminator: true },
      dialedBy: 'client ann',
      destination,
      peerData: new Map(),
      timeoutMs: 5000,
    },
    new AbortController().signal,
  )
  await dialed(client, 7, 'c1')

  const send = (connectionId: number | null, flags: number): void => {
    const headers = new Map([
      [2256, encodeText('c1')],
      [2258, encodeInt32(flags)],
    ])
    if (connectionId !== null) headers.set(1000, encodeInt32(connectionId))
    client.channel.send({ contentType: 1100, headers })
  }
  // OpenZiti clients send no connection ID, but they send the flag of the hosting endpoint.
  send(7, 0)
  send(hostedId, FROM_TERMINATOR)
  send(null, 0)
  send(null, FROM_TERMINATOR)
  const senders = () => bench.circuits.entered.map((entered) => entered.circuit.isTerminator)
  await eventually(senders).toEqual([false, true, false, true])
  client.channel.send({ contentType: 1103, body: encodeText('c1') })
  await eventually(() => bench.circuits.left).toHaveLength(2)
})

test('A client cannot send frames into another client’s circuit', async () => {
  await dialed(client, 7, 'c1')
  const other = await bench.admitted('bob')
  await dialed(other, 7, 'c2')
  for (const id of ['c1', 'c2', 'none']) {
    other.channel.send({
      contentType: 1100,
      headers: new Map([
        [2256, encodeText(id)],
        [1000, encodeInt32(7)],
      ]),
    })
  }
  other.channel.send({ contentType: 1103, body: encodeText('c1') })
  await eventually(() => bench.circuits.entered).toHaveLength(1)
  expect(bench.circuits.entered[0]?.circuit.id).toBe('c2')
  expect(bench.circuits.left).toEqual([])
})

test('A circuit whose client creates the frames itself can be ended by the client, its channel, its session, or the controller', async () => {
  await dialed(client, 1, 'c1')
  await dialed(client, 2, 'c2')
  client.channel.send({ contentType: 1103, body: encodeText('c1') })
  await eventually(() => bench.circuits.left.map(({ circuit }) => circuit.id)).toEqual(['c1'])
  bench.circuits.attached[1]?.destination.onUnrouted()
  await eventually(() => client.ofType(60_785, 2)).toHaveLength(1)
  expect(bench.circuits.left).toHaveLength(1)
  await dialed(client, 3, 'c3')
  bench.controller.endServiceSession('s1', 's1')
  await eventually(() => client.ofType(60_785, 3)).toHaveLength(1)
  await dialed(client, 4, 'c4')
  client.channel.close('over')
  await eventually(() => bench.circuits.left.map(({ circuit }) => circuit.id)).toEqual([
    'c1',
    'c3',
    'c4',
  ])
})
