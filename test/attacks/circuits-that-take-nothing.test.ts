import { afterEach, beforeEach, expect, test } from 'vitest'

import { systemClock } from '../../src/lib/clock.ts'
import { hostAt, type Peer } from '../router/forward/peer.ts'
import {
  endsOf,
  frame,
  TestController,
  type TestPlace,
  TestRouter,
} from '../router/forward/support.ts'
import { eventually } from '../router/support.ts'

// The attack: a client opens many circuits to a service that sends much, and acknowledges nothing,
// so that the router of the host buffers 4 MiB for each; or it sends payloads without the first
// one, and the router buffers all later payloads.

const MIB = 1024 * 1024
const ROOM = 16 * MIB
/** Maximum share of one dialing client. */
const OWN = 0.75 * ROOM

let router: TestRouter
let controller: TestController
beforeEach(() => {
  router = new TestRouter('r1', '', systemClock, ROOM)
  controller = new TestController()
  controller.connect(router)
})
afterEach(() => router.forwarder.stop())

interface Circuit {
  readonly id: string
  readonly place: TestPlace
  readonly host: Peer
}

/** A circuit that has begun and whose client does not close it. */
async function circuitOf(clientId: string, id: string): Promise<Circuit> {
  const host = hostAt(router.forwarder)
  const ends = endsOf(id)
  await controller.lay(ends, [router], [], { tags: { clientId } })
  const place = router.attach(controller, ends, false)
  send(place, id, 0, 4, '')
  await eventually(() => place.got.length).toBeGreaterThan(0)
  return { id, place, host }
}

function send(place: TestPlace, id: string, sequence: number, flags: number, text: string): void {
  const message = frame(id, text)
  const headers = new Map(message.headers)
  headers.set(2257, Buffer.from([sequence & 255, sequence >> 8, 0, 0, 0, 0, 0, 0]))
  headers.set(2258, Buffer.from([flags, 0, 0, 0]))
  router.forwarder.enter({ ...place.circuit, sharer: 'sender' }, { ...message, headers })
}

async function circuitsOfMallory(): Promise<readonly Circuit[]> {
  const circuits: Circuit[] = []
  for (let at = 0; at < 10; at += 1) circuits.push(await circuitOf('mallory', `c${at}`))
  return circuits
}

const buffered = (): number => router.forwarder.figures()['forwarder.buffered_bytes'] ?? 0

test('Unacknowledged data of a client is limited across all circuits of the client', async () => {
  const circuits = await circuitsOfMallory()
  for (const { host } of circuits) host.send(Buffer.alloc(10 * MIB))
  await eventually(buffered).toBeGreaterThan(OWN / 2)
  expect(buffered()).toBeLessThan(OWN + MIB)
  const ann = await circuitOf('ann', 'of ann')
  ann.host.send(Buffer.alloc(MIB))
  await eventually(() => ann.place.got.length).toBeGreaterThan(50)
  for (const { id } of circuits) controller.unroute(router, id, true)
  await eventually(buffered).toBeLessThan(2 * MIB)
})

test('Data received after a missing payload is limited across all circuits of the client', async () => {
  const circuits = await circuitsOfMallory()
  const text = 'x'.repeat(32 * 1024)
  for (let sequence = 2; sequence < 130; sequence += 1) {
    for (const { id, place } of circuits) send(place, id, sequence, 0, text)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await eventually(buffered).toBeGreaterThan(OWN / 2)
  expect(buffered()).toBeLessThan(OWN + MIB)
})
