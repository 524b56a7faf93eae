import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  CircuitConfirmationSchema,
  FaultSchema,
  FaultSubject,
  RouterLinksSchema,
} from '../../proto/gen/router_pb.ts'
import { decodeCircuit, encodeCircuit } from '../../src/fabric/circuits/circuit-codec.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { circuitOf, HeirStage, routes, unroutes } from './heir-stage.ts'

// Goal: a circuit belongs to one controller, and the next one takes it over when that controller
// fails. Method: the handlers of ctrl1 with routers that are connected by pipes; the test publishes
// in place of the other controllers.

const REROUTE_ATTEMPT = 99_969_996
/** Time for which a takeover is published to the other controllers. */
const TOLD_MS = 5000
let stage: HeirStage
let [er1, er2]: Pipe[] = []

beforeEach(async () => {
  stage = new HeirStage()
  er1 = await stage.routers.dial('er1')
  er2 = await stage.routers.dial('er2')
  stage.linked('l1', 'er2', 'er1')
})
afterEach(() => stage.routers.channels.stop())

async function confirm(pipe: Pipe | undefined, id: string, idleMs = 0): Promise<void> {
  const idle = { circuitIds: [id], idleTimes: { [id]: BigInt(idleMs) * 1_000_000n } }
  const body = toBinary(CircuitConfirmationSchema, create(CircuitConfirmationSchema, idle))
  pipe?.say({ contentType: 1034, body })
  await settle()
}

async function tellFault(pipe: Pipe | undefined, subject: FaultSubject, id: string, iteration = 0) {
  const fault = create(FaultSchema, { subject, id, iteration })
  pipe?.say({ contentType: 1004, body: toBinary(FaultSchema, fault) })
  await settle()
}

const attempts = (pipe: Pipe | undefined) =>
  pipe === undefined ? [] : routes(pipe).map(({ circuitId, attempt }) => [circuitId, attempt])
const endsTold = (pipe: Pipe | undefined) => (pipe === undefined ? [] : unroutes(pipe))

test('The published record of a circuit contains everything that the next owner needs', () => {
  const circuit = circuitOf('c1', { turn: 3, isOfTunnel: true, instanceId: 'blue' })
  expect(decodeCircuit('c1', encodeCircuit(circuit))).toEqual(circuit)
})

describe('A circuit whose owning controller is gone', () => {
  test('becomes owned by the next controller in order, which informs the circuit’s routers', async () => {
    stage.told('ctrl0', 'c1')
    await stage.sweep()
    expect(stage.circuits.list()).toEqual([])
    await stage.lose('ctrl0')
    expect(stage.circuits.get('c1')).toMatchObject({ clientId: 'i1', routerIds: ['er1', 'er2'] })
    expect(attempts(er1)).toEqual([['c1', REROUTE_ATTEMPT]])
    expect(attempts(er2)).toEqual([['c1', REROUTE_ATTEMPT]])
    expect(decodeCircuit('c1', stage.topic.own.get('c1') ?? Uint8Array.of())?.turn).toBe(1)
  })

  test('is left to another controller that is next in order, and taken over here if that controller is gone as well', async () => {
    stage.told('ctrl1b', 'c1')
    stage.controllers.add('ctrl1b')
    await stage.lose('ctrl1b')
    expect(stage.circuits.list(), 'the circuit belongs to ctrl2').toEqual([])
    stage.controllers.delete('ctrl2')
    stage.controllers.delete('ctrl0')
    await stage.sweep()
    expect(stage.circuits.list()).toHaveLength(1)
  })

  test('is not taken over by a controller that may be partitioned', async () => {
    stage.told('ctrl0', 'c1')
    stage.isInQuorum = false
    await stage.lose('ctrl0')
    expect(stage.circuits.list()).toEqual([])
    stage.isInQuorum = true
    await stage.sweep()
    expect(stage.circuits.list()).toHaveLength(1)
  })

  test('is not taken over if its previous owner has ended the circuit', async () => {
    stage.told('ctrl0', 'c1')
    stage.topic.hear('ctrl0', 'c1', undefined)
    await stage.lose('ctrl0')
    expect([stage.circuits.list(), endsTold(er1)]).toEqual([[], []])
  })

  test('is discarded if its next owner does not take it over within a minute', async () => {
    stage.told('ctrl1b', 'c1')
    await stage.lose('ctrl1b')
    stage.nowMs += 60_001
    await stage.sweep()
    stage.controllers.delete('ctrl2')
    stage.controllers.delete('ctrl0')
    await stage.sweep()
    expect(stage.circuits.list()).toEqual([])
  })

  test('is rerouted if its link was lost before the takeover, and ends if there is no other path', async () => {
    const er3 = await stage.routers.dial('er3')
    stage.linked('l2', 'er1', 'er3')
    stage.linked('l3', 'er3', 'er2')
    stage.told('ctrl0', 'c1')
    stage.links.lost('er1', 'l1', 1)
    await stage.lose('ctrl0')
    expect(stage.circuits.get('c1')?.linkIds).toEqual(['l2', 'l3'])
    expect(attempts(er3)).toEqual([['c1', REROUTE_ATTEMPT]])
    stage.links.lost('er3', 'l3', 1)
    await settle()
    expect(stage.circuits.list()).toEqual([])
    expect(endsTold(er1)).toEqual(['c1 now'])
  })

  test('keeps its path until the routers have reported their links', async () => {
    stage.told('ctrl0', 'c1')
    er2?.destroy()
    await settle()
    await stage.lose('ctrl0')
    expect(stage.circuits.get('c1')?.linkIds).toEqual(['l1'])
    const again = await stage.routers.dial('er2')
    const whole = { fullRefresh: true, links: [{ id: 'l1', destRouterId: 'er1', iteration: 1 }] }
    const body = toBinary(RouterLinksSchema, create(RouterLinksSchema, whole))
    again.say({ contentType: 1035, body })
    await settle()
    expect(attempts(again), 'it receives the owner of the circuit').toEqual([
      ['c1', REROUTE_ATTEMPT],
    ])
  })

  test('ends if one of its routers reports that a circuit endpoint no longer exists', async () => {
    for (const id of ['c1', 'c2']) stage.told('ctrl0', id)
    await stage.lose('ctrl0')
    await tellFault(er1, FaultSubject.INGRESS, 'c1')
    expect(endsTold(er2)).toEqual(['c1'])
    await tellFault(er2, FaultSubject.EGRESS, 'c2')
    expect(stage.circuits.list()).toEqual([])
    expect([...stage.topic.own]).toEqual([])
  })

  test('ends once it has been idle for its service’s maximum idle time', async () => {
    stage.told('ctrl0', 'c1')
    await stage.lose('ctrl0')
    await confirm(er1, 'c1', 59_999)
    expect(stage.circuits.list()).toHaveLength(1)
    await confirm(er1, 'c1', 60_000)
    expect(stage.circuits.list()).toEqual([])
  })
})

describe('If two controllers claim a circuit', () => {
  beforeEach(async () => {
    stage.told('ctrl0', 'c1')
    await stage.lose('ctrl0')
  })

  test('the controller that took over last keeps the circuit, and the other controller sends the circuit’s routers nothing', async () => {
    stage.told('ctrl2', 'c1', { turn: 2 })
    await settle()
    expect([stage.circuits.list(), [...stage.topic.own], endsTold(er1)]).toEqual([[], [], []])
  })

  test('the controller whose ID sorts first keeps the circuit if both took it over at the same time', async () => {
    stage.told('ctrl2', 'c1', { turn: 1 })
    expect(stage.circuits.list()).toHaveLength(1)
    stage.told('ctrl0', 'c1', { turn: 1 })
    expect(stage.circuits.list()).toEqual([])
  })

  test('the controller that keeps the circuit informs the circuit’s routers again', async () => {
    stage.told('ctrl2', 'c1')
    await settle()
    expect(attempts(er1)).toHaveLength(2)
  })
})

describe('A controller to which a router reports another controller’s circuit', () => {
  test('becomes the owner of the circuit', async () => {
    stage.told('ctrl0', 'c1')
    await confirm(er1, 'c1')
    expect(stage.circuits.list()).toHaveLength(1)
    expect(endsTold(er1)).toEqual([])
    stage.told('ctrl2', 'c2')
    await tellFault(er2, FaultSubject.EGRESS, 'c2')
    expect(endsTold(er1)).toEqual(['c2'])
  })

  describe('and that ends the circuit afterwards', () => {
    const turnsTold = (): (number | undefined)[] =>
      [...stage.topic.own].map(([id, record]) => decodeCircuit(id, record)?.turn)

    test.each<[string, () => Promise<void>]>([
      ['a fault of a circuit endpoint', () => tellFault(er2, FaultSubject.EGRESS, 'c1')],
      ['the idle time of the circuit', () => confirm(er1, 'c1', 60_000)],
      [
        'the end of its service session',
        () => {
          stage.endedSessions.add('dial')
          return confirm(er1, 'c1')
        },
      ],
    ])('because of %s, publishes for a limited time that it was the owner', async (_by, end) => {
      stage.told('ctrl2', 'c1', { turn: 1 })
      await end()
      expect(stage.circuits.list()).toEqual([])
      expect(turnsTold()).toEqual([2])
      stage.nowMs += TOLD_MS - 1
      await stage.sweep()
      expect(turnsTold()).toEqual([2])
      stage.nowMs += 1
      await stage.sweep()
      expect(turnsTold()).toEqual([])
    })

    test('sends the circuit’s routers no route if one of the circuit endpoints is gone', async () => {
      stage.told('ctrl2', 'c1', { turn: 1 })
      await tellFault(er2, FaultSubject.EGRESS, 'c1')
      expect([attempts(er1), attempts(er2)]).toEqual([[], []])
      expect([endsTold(er1), endsTold(er2)]).toEqual([['c1'], ['c1']])
    })

    test('stops publishing the circuit when another controller owns it', async () => {
      stage.told('ctrl2', 'c1', { turn: 1 })
      await confirm(er1, 'c1')
      stage.told('ctrl2', 'c1', { turn: 3 })
      expect([stage.circuits.list(), turnsTold()]).toEqual([[], []])
    })

    test('stops publishing the circuit when another controller takes over the ended circuit', async () => {
      stage.told('ctrl2', 'c1', { turn: 1 })
      await tellFault(er2, FaultSubject.EGRESS, 'c1')
      stage.told('ctrl2', 'c1', { turn: 1 })
      expect(turnsTold(), 'it has not received the answer yet').toEqual([2])
      stage.told('ctrl2', 'c1', { turn: 3 })
      expect(turnsTold()).toEqual([])
    })

    test('publishes the circuit as its own while the circuit lasts', async () => {
      stage.told('ctrl2', 'c1', { turn: 1 })
      await confirm(er1, 'c1')
      stage.nowMs += TOLD_MS
      await stage.sweep()
      expect(turnsTold()).toEqual([2])
      await tellFault(er2, FaultSubject.EGRESS, 'c1')
      expect(turnsTold()).toEqual([])
    })

    test('publishes the circuit longer if a router reports the ended circuit again', async () => {
      for (const id of ['c1', 'c2']) {
        stage.told('ctrl2', id, { turn: 1 })
        await tellFault(er2, FaultSubject.EGRESS, id)
      }
      expect(turnsTold()).toEqual([2, 2])
      stage.nowMs += TOLD_MS - 1
      await confirm(er1, 'c1', 60_000)
      stage.nowMs += 1
      await stage.sweep()
      expect([...stage.topic.own.keys()]).toEqual(['c1'])
    })
  })

  test('does not end an unknown circuit while another controller’s record of it may still arrive', async () => {
    await confirm(er1, 'c1')
    await tellFault(er1, FaultSubject.FORWARD, 'c1')
    expect(endsTold(er1)).toEqual([])
    stage.nowMs += 15_000
    await confirm(er1, 'c1')
    expect(endsTold(er1)).toEqual(['c1 now'])
  })
})
