import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { encodeText } from '../../../src/channel/headers.ts'
import { REROUTE_ATTEMPT } from '../../../src/channel/messages/circuits.ts'
import { scheduleByIntervals, scheduleBySharedTimer } from '../../support/fake-schedule.ts'
import { eventually } from '../support.ts'
import { endsOf, frame, linked, TestController, TestDialer, TestRouter } from './support.ts'

// Goal: controllers receive each fault of their circuits once, and disconnected controllers receive
// it when they reconnect. Method: real forwarders and channels, in memory.

const circuit = endsOf('circuit1')
let controller: TestController
let routers: TestRouter[]

beforeEach(() => {
  // The first report is sent a full interval after the start, so that its content is predictable.
  scheduleByIntervals()
  controller = new TestController()
  routers = []
})
afterEach(() => {
  for (const { forwarder } of routers) forwarder.stop()
  scheduleBySharedTimer()
})

let nowMs = 0
const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }

function router(id: string, options = '', isTimed = false): TestRouter {
  const made = isTimed ? new TestRouter(id, options, clock) : new TestRouter(id, options)
  routers.push(made)
  controller.connect(made)
  return made
}

const forwardFault = 3
const unknownOwnerFault = 4

describe('A frame for which a router has no next hop', () => {
  test('is reported to the owner of the circuit, at most once per interval', async () => {
    const [one, two] = [router('r1'), router('r2', 'faultTxInterval: 40')]
    const link = linked(one, two, 'l1')
    const other = new TestController('c2')
    other.connect(two)
    new TestDialer(two, controller)
    await controller.lay(circuit, [two], [])
    for (let at = 0; at < 100; at += 1) link.ofFirst.trySend(frame(circuit.id, `${at}`), 1_000_000)
    await eventually(() => controller.faults(two)).toEqual([
      { subject: forwardFault, ids: [circuit.id] },
    ])
    expect(other.faults(two)).toEqual([])
    expect(two.logged('was not routed here'), 'logged once').toHaveLength(1)
  })

  test('is reported to all controllers if the circuit is unknown', async () => {
    const [one, two] = [router('r1'), router('r2', 'faultTxInterval: 40')]
    const link = linked(one, two, 'l1')
    const other = new TestController('c2')
    other.connect(two)
    for (const id of ['a', 'b', 'a']) link.ofFirst.trySend(frame(id, 'x'), 1_000_000)
    for (const each of [controller, other]) {
      await eventually(() => each.faults(two)).toEqual([
        { subject: unknownOwnerFault, ids: ['a', 'b'] },
      ])
    }
  })

  test('is not reported if the circuit gets a route before the report is sent', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const [one, two] = [router('r1'), router('r2', 'faultTxInterval: 60')]
      const link = linked(one, two, 'l1')
      const dialer = new TestDialer(two, controller)
      link.ofFirst.trySend(frame(circuit.id, 'too early'), 1_000_000)
      await eventually(() => two.forwarder.figures()['forwarder.faults']).toBe(1)
      await controller.lay(circuit, [one, two], [link])
      link.ofFirst.trySend(frame('never', 'x'), 1_000_000)
      await eventually(() => two.forwarder.figures()['forwarder.faults']).toBe(2)
      vi.advanceTimersByTime(60)
      await eventually(() => controller.faults(two)).toEqual([
        { subject: unknownOwnerFault, ids: ['never'] },
      ])
      expect(dialer.placeOf(circuit).bodies).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })

  test('is reported when the owner of the circuit reconnects', async () => {
    const [one, two] = [router('r1'), router('r2', 'faultTxInterval: 30')]
    const link = linked(one, two, 'l1')
    new TestDialer(two, controller)
    await controller.lay(circuit, [two], [])
    const other = new TestController('c2')
    other.connect(two)
    controller.disconnect(two)
    for (const id of [circuit.id, 'x']) link.ofFirst.trySend(frame(id, 'x'), 1_000_000)
    await eventually(() => other.faults(two)).toEqual([{ subject: unknownOwnerFault, ids: ['x'] }])
    expect(two.forwarder.circuit(circuit.id), 'the circuit is kept').toBeDefined()
    controller.connect(two)
    await eventually(() => controller.faults(two)).toEqual([
      { subject: forwardFault, ids: [circuit.id] },
    ])
  })

  test('is reported when the link is interrupted in the middle of a circuit', async () => {
    const [one, two] = [router('r1', 'faultTxInterval: 40'), router('r2')]
    const link = linked(one, two, 'l1')
    new TestDialer(two, controller)
    await controller.lay(circuit, [one, two], [link])
    const client = one.attach(controller, circuit, false)
    link.cut()
    client.send('lost')
    await eventually(() => controller.faults(one)).toEqual([
      { subject: forwardFault, ids: [circuit.id] },
    ])
  })
})

describe('A circuit whose endpoint at a router was closed', () => {
  test('is reported to its owner as an ingress or egress fault, and frames for it are not reported as faults', async () => {
    const [one, two] = [router('r1'), router('r2', 'faultTxInterval: 30')]
    const link = linked(one, two, 'l1')
    const dialer = new TestDialer(two, controller)
    await controller.lay(circuit, [one, two], [link])
    const client = one.attach(controller, circuit, false)
    dialer.placeOf(circuit).leave()
    await eventually(() => controller.faults(two)).toEqual([{ subject: 1, ids: [circuit.id] }])
    client.send('crossing')
    link.ofFirst.trySend(frame('x', 'x'), 1_000_000)
    await eventually(() => controller.faults(two)).toHaveLength(2)
    expect(controller.faults(two)[1]).toEqual({ subject: unknownOwnerFault, ids: ['x'] })
    client.leave()
    await eventually(() => controller.faults(one)).toEqual([{ subject: 0, ids: [circuit.id] }])
  })

  test('is reported to its owner even if the owner was disconnected, once it reconnects', async () => {
    const one = router('r1')
    const dialer = new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    const place = dialer.placeOf(circuit)
    controller.disconnect(one)
    place.leave()
    controller.connect(one)
    await eventually(() => controller.faults(one)).toEqual([{ subject: 1, ids: [circuit.id] }])
  })

  test('is reported again if more frames for the circuit arrive', async () => {
    const [one, two] = [router('r1'), router('r2', 'idleTxInterval: 30')]
    const link = linked(one, two, 'l1')
    const dialer = new TestDialer(two, controller)
    await controller.lay(circuit, [one, two], [link])
    const client = one.attach(controller, circuit, false)
    dialer.placeOf(circuit).leave()
    await eventually(() => {
      client.send('to nobody')
      return controller.faults(two).length
    }).toBeGreaterThan(3)
    expect(controller.faults(two).at(-1)).toEqual({ subject: 1, ids: [circuit.id] })
  })

  test('is not reported if its owner has already removed the circuit', async () => {
    const one = router('r1')
    const dialer = new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    controller.unroute(one, circuit.id, true)
    await eventually(() => dialer.placeOf(circuit).isUnrouted).toBe(true)
    dialer.placeOf(circuit).leave()
    await controller.lay(endsOf('next'), [one], [])
    expect(controller.faults(one)).toEqual([])
  })
})

describe('A circuit without traffic', () => {
  const often = 'idleTxInterval: 30, idleCircuitTimeout: 1000'

  test('is repeatedly reported to its owner as existing, while a circuit with traffic is not', async () => {
    nowMs = 0
    const one = router('r1', often, true)
    const dialer = new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    const busy = endsOf('busy')
    await controller.lay(busy, [one], [])
    const client = one.attach(controller, busy, false)
    nowMs = 2000
    client.send('here')
    await eventually(() => controller.confirmations(one).length).toBeGreaterThan(1)
    expect(new Set(controller.confirmations(one).flatMap((ids) => Object.keys(ids)))).toEqual(
      new Set([circuit.id]),
    )
    expect(controller.confirmations(one)[0]).toEqual({ [circuit.id]: 2000 })
    expect(dialer.placeOf(busy).bodies).toEqual(['here'])
  })

  test('is reported as existing when its owner reconnects', async () => {
    nowMs = 0
    const one = router('r1', 'idleTxInterval: 86400000, idleCircuitTimeout: 1000', true)
    new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    controller.disconnect(one)
    nowMs = 2000
    controller.connect(one)
    await eventually(() => controller.confirmations(one)).toEqual([{ [circuit.id]: 2000 }])
  })

  test('is reported as existing to the controller that sent the last route for the circuit', async () => {
    nowMs = 0
    const one = router('r1', often, true)
    const dialer = new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    one.attach(controller, circuit, false)
    controller.disconnect(one)
    const heir = new TestController('c2')
    heir.connect(one)
    await heir.lay(circuit, [one], [], { attempt: REROUTE_ATTEMPT, isReroute: true })
    nowMs = 2000
    await eventually(() => heir.confirmations(one)[0]).toEqual({ [circuit.id]: 2000 })
    dialer.placeOf(circuit).leave()
    await eventually(() => heir.faults(one)).toEqual([{ subject: 1, ids: [circuit.id] }])
  })

  test('is reported as ended to a controller that routes it later, if its endpoint at the router was already closed', async () => {
    const one = router('r1')
    const dialer = new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    one.attach(controller, circuit, false)
    controller.disconnect(one)
    dialer.placeOf(circuit).leave()
    const heir = new TestController('c2')
    heir.connect(one)
    await heir.lay(circuit, [one], [], { attempt: REROUTE_ATTEMPT, isReroute: true })
    await eventually(() => heir.faults(one)).toEqual([{ subject: 1, ids: [circuit.id] }])
  })

  test('ends after a day if its owner does not return', async () => {
    nowMs = 0
    const one = router('r1', often, true)
    const dialer = new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    const place = dialer.placeOf(circuit)
    const other = new TestController('c2')
    other.connect(one)
    await other.lay(endsOf('of another'), [one], [])
    nowMs = 3_600_000
    await eventually(() => controller.confirmations(one).length).toBeGreaterThan(0)
    controller.disconnect(one)
    nowMs += 23 * 3_600_000
    const looked = other.confirmations(one).length
    await eventually(() => other.confirmations(one).length).toBeGreaterThan(looked + 1)
    expect(place.isUnrouted).toBe(false)
    nowMs += 2 * 3_600_000
    await eventually(() => place.isUnrouted).toBe(true)
  })
})

test('headers of the channel on which a frame arrives are not forwarded with the frame', async () => {
  const [one, two, three] = [router('r1'), router('r2'), router('r3')]
  const links = [linked(one, two, 'l1'), linked(two, three, 'l2')]
  const dialer = new TestDialer(three, controller)
  await controller.lay(circuit, [one, two, three], links)
  const sent = frame(circuit.id, 'x')
  const headers = new Map([
    ...sent.headers,
    [1, new Uint8Array(4)],
    [130, encodeText('x')],
    [2016, new Uint8Array(4)],
  ] as const)
  links[0]?.ofFirst.trySend({ ...sent, headers }, 1_000_000)
  await eventually(() => dialer.placeOf(circuit).bodies).toEqual(['x'])
  const [got] = dialer.placeOf(circuit).got
  expect([...(got?.headers ?? [])].map(([key]) => key).filter((key) => key > 6)).toEqual([
    2256, 2257, 2258, 2016,
  ])
  expect(got?.headers.has(1)).toBe(false)
})
