import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { REROUTE_ATTEMPT } from '../../../src/channel/messages/circuits.ts'
import { eventually } from '../support.ts'
import { digestOf, hostAt, Peer } from './peer.ts'
import { endsOf, linked, TestController, TestRouter } from './support.ts'

// Goal: data that one application sends into a circuit arrives at the other, completely and once,
// despite link failures. Method: real forwarders with real circuit endpoints; links and control
// channels are real channels in memory.

const circuit = endsOf('circuit1')
const MIB = 1024 * 1024
let controller: TestController
let routers: TestRouter[]

beforeEach(() => {
  controller = new TestController()
  routers = []
})
afterEach(() => {
  for (const { forwarder } of routers) forwarder.stop()
})

function router(id: string): TestRouter {
  const made = new TestRouter(id, 'faultTxInterval: 30')
  routers.push(made)
  controller.connect(made)
  return made
}

function hosting(at: TestRouter): Peer {
  return hostAt(at.forwarder)
}

function client(at: TestRouter): Peer {
  const peer = new Peer()
  const owner = controller.connectionOf(at)
  const place = { id: circuit.id, address: circuit.ingress, owner, isTerminator: false }
  peer.end = at.forwarder.open(place, peer)
  return peer
}

async function expectBoth(
  from: Peer,
  to: Peer,
  sent: { readonly there: Buffer; readonly back: Buffer },
): Promise<void> {
  await eventually(() => [to.isFinished, from.isFinished]).toEqual([true, true])
  expect([to.bytes, from.bytes]).toEqual([sent.there.length, sent.back.length])
  expect(to.digest.digest('hex')).toBe(digestOf(sent.there))
  expect(from.digest.digest('hex')).toBe(digestOf(sent.back))
}

describe('A circuit carries 10 MiB in one direction and 3 MiB in the other', () => {
  const sent = { there: randomBytes(10 * MIB), back: randomBytes(3 * MIB) }

  test.each([1, 2, 3])('over %i routers', async (count) => {
    const path = Array.from({ length: count }, (_, at) => router(`r${at}`))
    const links = path.slice(1).map((to, at) => linked(path[at] as TestRouter, to, `l${at}`))
    const host = hosting(path.at(-1) as TestRouter)
    const [answer] = await controller.lay(circuit, path, links)
    expect(answer).toMatchObject({ isSuccess: true })
    const from = client(path[0] as TestRouter)
    from.send(sent.there)
    host.send(sent.back)
    await expectBoth(from, host, sent)
    expect(path.map(({ lines }) => lines).flat()).toEqual([])
  })

  test('while a reroute replaces its first path, because the first link is interrupted', async () => {
    const [one, two, three] = [router('r1'), router('r2'), router('r3')]
    const direct = linked(one, two, 'l1')
    const around = [linked(one, three, 'l2'), linked(three, two, 'l3')]
    const host = hosting(two)
    await controller.lay(circuit, [one, two], [direct])
    const from = client(one)
    const { promise: isHalf, resolve } = Promise.withResolvers<void>()
    host.onBytes = (bytes) => {
      if (bytes < 4 * MIB) return
      direct.cut()
      resolve()
    }
    from.send(sent.there)
    host.send(sent.back)
    await isHalf
    await controller.lay(circuit, [one, three, two], around, {
      attempt: REROUTE_ATTEMPT,
      isReroute: true,
    })
    await expectBoth(from, host, sent)
    expect(three.forwarder.figures()['forwarder.messages']).toBeGreaterThan(100)
  })
})

describe('The endpoints of a circuit', () => {
  test('close when both have finished, and each router reports to the owner of the circuit that its endpoint is closed', async () => {
    const [one, two] = [router('r1'), router('r2')]
    const host = hosting(two)
    await controller.lay(circuit, [one, two], [linked(one, two, 'l1')])
    const from = client(one)
    from.send(Buffer.from('x'))
    host.send(Buffer.from('y'))
    await eventually(() => [from.closed !== null, host.closed !== null]).toEqual([true, true])
    await eventually(() => controller.faults(one)).toEqual([{ subject: 0, ids: [circuit.id] }])
    await eventually(() => controller.faults(two)).toEqual([{ subject: 1, ids: [circuit.id] }])
    // The two ends still answer each other, until the circuit is removed from them.
    expect(one.forwarder.figures()).toMatchObject({ 'forwarder.ends': 1 })
    for (const each of [one, two]) controller.unroute(each, circuit.id, true)
    await eventually(() => one.forwarder.figures()['forwarder.ends']).toBe(0)
    await eventually(() => two.forwarder.figures()['forwarder.ends']).toBe(0)
    expect([from.isWhole, host.isWhole]).toEqual([true, true])
  })

  test('close when the circuit is removed, and no fault is reported', async () => {
    const [one, two] = [router('r1'), router('r2')]
    const host = hosting(two)
    await controller.lay(circuit, [one, two], [linked(one, two, 'l1')])
    const from = client(one)
    for (const each of [one, two]) controller.unroute(each, circuit.id, true)
    await eventually(() => [from.closed !== null, host.closed !== null]).toEqual([true, true])
    expect([from.isWhole, host.isWhole]).toEqual([false, false])
    expect([...controller.faults(one), ...controller.faults(two)]).toEqual([])
    expect(one.forwarder.figures()).toMatchObject({ 'forwarder.circuits': 0, 'forwarder.ends': 0 })
  })

  test('wait for a slow link without losing data', async () => {
    const [one, two] = [router('r1'), router('r2')]
    const link = linked(one, two, 'l1')
    const host = hosting(two)
    await controller.lay(circuit, [one, two], [link])
    const from = client(one)
    // The channel of the link is full with data of other circuits.
    link.ofFirst.channel.send({ contentType: 9999, body: randomBytes(3 * MIB) })
    const data = randomBytes(2 * MIB)
    from.send(data)
    await eventually(() => host.isFinished).toBe(true)
    expect(host.digest.digest('hex')).toBe(digestOf(data))
  })
})
