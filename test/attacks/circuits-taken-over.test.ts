import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { CircuitConfirmationSchema, FaultSchema, FaultSubject } from '../../proto/gen/router_pb.ts'
import { encodeCircuit } from '../../src/fabric/circuits/circuit-codec.ts'
import { createCircuitTable } from '../../src/fabric/circuits/circuit-table.ts'
import { SharedCircuits } from '../../src/fabric/circuits/shared-circuits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { LocalTopic } from '../api/support/local-topic.ts'
import { settle } from '../channel/pipe.ts'
import { circuitOf, HeirStage, routes, unroutes } from '../fabric/heir-stage.ts'

// The attack: an attacker uses the time after the controller of a circuit has failed. A stolen
// router claims circuits of others at the next controller; a client whose session has ended
// continues its circuit; a compromised controller floods the others with circuits, or with one that
// has an endless path.

let stage: HeirStage

beforeEach(() => {
  stage = new HeirStage()
})
afterEach(() => stage.routers.channels.stop())

test('a router cannot move a circuit of other routers to another controller', async () => {
  const er1 = await stage.routers.dial('er1')
  const stolen = await stage.routers.dial('stolen')
  stage.told('ctrl0', 'c1')
  stage.nowMs += 60_000
  const fault = create(FaultSchema, { subject: FaultSubject.EGRESS, id: 'c1' })
  stolen.say({ contentType: 1004, body: toBinary(FaultSchema, fault) })
  const asked = create(CircuitConfirmationSchema, { circuitIds: ['c1', 'a guess'] })
  stolen.say({ contentType: 1034, body: toBinary(CircuitConfirmationSchema, asked) })
  await settle()
  expect([stage.circuits.list(), routes(er1), unroutes(er1)]).toEqual([[], [], []])
  expect(unroutes(stolen), 'the answer is the same for known and unknown circuits').toEqual([
    'c1 now',
    'c1 now',
    'a guess now',
  ])
})

test('a circuit ends if the session of its client ended while the circuit had no owning controller', async () => {
  const er1 = await stage.routers.dial('er1')
  const er2 = await stage.routers.dial('er2')
  stage.linked('l1', 'er2', 'er1')
  stage.told('ctrl0', 'c1')
  stage.endedSessions.add('dial')
  await stage.lose('ctrl0')
  expect(stage.circuits.list()).toEqual([])
  expect([...unroutes(er1), ...unroutes(er2)]).toEqual(['c1 now', 'c1 now'])
})

test('a circuit of a tunneler ends if the tunneler lost its right to the circuit while the circuit had no owning controller', async () => {
  const er1 = await stage.routers.dial('er1')
  const { live } = circuitOf('c1')
  stage.told('ctrl0', 'c1', { live: { ...live, sessionId: '' }, isOfTunnel: true })
  stage.tunnels.judged = { ok: false, fault: 'access' }
  await stage.lose('ctrl0')
  expect(stage.circuits.list()).toEqual([])
  expect(unroutes(er1)).toEqual(['c1 now'])
})

test('a controller that repeatedly reconnects with new circuits fills only a limited part of the circuit tables of other controllers', () => {
  const topic = new LocalTopic<Uint8Array>('ctrl1')
  const shared = new SharedCircuits({
    topic,
    selfId: 'ctrl1',
    table: createCircuitTable('ctrl1', () => undefined),
    controllers: () => ['ctrl1', 'ctrl2'],
    isInQuorum: () => false,
    isSessionOver: () => false,
    clock: systemClock,
    log: { info: () => undefined, warn: () => undefined },
  })
  const record = encodeCircuit(circuitOf('c'))
  for (let start = 0; start < 7; start += 1) {
    for (let at = 0; at < 10_000; at += 1) topic.hear('ctrl0', `${start} ${at}`, record)
    topic.lose('ctrl0')
  }
  expect(shared.orphaned).toBe(65_536)
})

test('a controller cannot publish a circuit with more routers than the maximum path length', async () => {
  const routerIds = Array.from({ length: 65 }, (_, at) => `er${at}`)
  const links = routerIds.slice(1).map((destRouterId, at) => {
    return { id: `l${at}`, iteration: 1, sourceRouterId: routerIds[at] ?? '', destRouterId }
  })
  stage.told('ctrl0', 'endless', { path: { routerIds, links, cost: 1 } })
  stage.told('ctrl0', 'c1')
  await stage.lose('ctrl0')
  expect(stage.circuits.list().map(({ id }) => id)).toEqual(['c1'])
})
