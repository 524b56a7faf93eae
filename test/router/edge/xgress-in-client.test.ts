import { afterEach, beforeEach, expect, test } from 'vitest'

import { encodeFlag, encodeInt32, readInt32, encodeText } from '../../../src/channel/headers.ts'
import {
  EdgeBench,
  eventually,
  madeCircuit,
  serviceToken,
  type TestClient,
  textOf,
} from './support.ts'

// Goal: a client that keeps the end of its circuit itself has its frames forwarded into that
// circuit, and into no other.

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

test('Frames that a client creates itself enter its circuit, and frames of the circuit reach the client', async () => {
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
