import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { encodeText } from '../../../src/channel/headers.ts'
import { REROUTE_ATTEMPT } from '../../../src/channel/messages/circuits.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { DialFailure } from '../../../src/overlay/circuits/circuit-endpoint.ts'
import { eventually } from '../support.ts'
import { endsOf, linked, TestController, TestDialer, TestRouter, unroute } from './support.ts'
import { dialErrorCodes } from '../../../src/channel/messages/dial-error.ts'

// Goal: a router accepts the routes of its controllers, and answers each of them. Method: real
// forwarders and channels, in memory.

const circuit = endsOf('circuit1')
let controller: TestController
let routers: TestRouter[]

beforeEach(() => {
  controller = new TestController()
  routers = []
})
afterEach(() => {
  for (const { forwarder } of routers) forwarder.stop()
})

function router(id: string, options = '', clock: Clock = systemClock): TestRouter {
  const made = new TestRouter(id, options, clock)
  routers.push(made)
  controller.connect(made)
  return made
}

describe('A route that a controller sends to a router', () => {
  test('is refused if it is a reroute and the router has no endpoint of the circuit', async () => {
    const one = router('r1')
    const [answer] = await controller.lay(circuit, [one], [], {
      attempt: REROUTE_ATTEMPT,
      isReroute: true,
    })
    expect(answer).toMatchObject({ isSuccess: false, errorCode: dialErrorCodes.other })
    expect(one.forwarder.circuit(circuit.id)).toBeUndefined()
  })

  test('is confirmed once the terminator is reached, and the confirmation contains the terminator’s peer data', async () => {
    const one = router('r1')
    const dialer = new TestDialer(one, controller)
    const [answer] = await controller.lay(circuit, [one], [])
    expect(answer).toMatchObject({
      contentType: 1022,
      circuitId: 'circuit1',
      attempt: 0,
      isSuccess: true,
    })
    expect(answer?.headers.get(1110)).toEqual(encodeText('local'))
    const client = one.attach(controller, circuit, false)
    client.send('there')
    dialer.placeOf(circuit).send('back')
    expect(dialer.placeOf(circuit).bodies).toEqual(['there'])
    expect(client.bodies).toEqual(['back'])
  })

  test('carries a circuit over two routers and one link, and over three routers', async () => {
    const [one, two, three] = [router('r1'), router('r2'), router('r3')]
    const [first, second] = [linked(one, two, 'l1'), linked(two, three, 'l2')]
    const dialer = new TestDialer(two, controller)
    await controller.lay(circuit, [one, two], [first])
    one.attach(controller, circuit, false).send('over two')
    await eventually(() => dialer.placeOf(circuit).bodies).toEqual(['over two'])
    const far = endsOf('circuit2')
    const last = new TestDialer(three, controller)
    await controller.lay(far, [one, two, three], [first, second])
    const client = one.attach(controller, far, false)
    client.send('over three')
    await eventually(() => last.placeOf(far).bodies).toEqual(['over three'])
    for (const type of [1101, 1100]) last.placeOf(far).send(`back ${type}`, type)
    await eventually(() => client.bodies).toEqual(['back 1101', 'back 1100'])
  })

  test('does not dial again if the route message is repeated', async () => {
    const one = router('r1')
    const dialer = new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    const place = dialer.placeOf(circuit)
    const [again] = await controller.lay(circuit, [one], [])
    expect(again).toMatchObject({ isSuccess: true })
    expect(dialer.placeOf(circuit)).toBe(place)
  })

  test('for a second attempt creates another circuit endpoint, and both endpoints exist until the circuit is removed', async () => {
    const one = router('r1')
    const dialer = new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    const second = { ...circuit, egress: 'second' }
    const [answer] = await controller.lay(second, [one], [], { attempt: 1 })
    expect(answer).toMatchObject({ isSuccess: true, attempt: 1 })
    one.attach(controller, circuit, false).send('there')
    expect(dialer.placeOf(second).bodies).toEqual(['there'])
    controller.unroute(one, circuit.id, true)
    await eventually(() => dialer.placeOf(circuit).isUnrouted).toBe(true)
    expect(dialer.placeOf(second).isUnrouted).toBe(true)
    expect(one.forwarder.figures()).toMatchObject({ 'forwarder.circuits': 0 })
  })

  test('for a reroute keeps the earlier route, so that data in flight on it still arrives', async () => {
    const [one, two, three] = [router('r1'), router('r2'), router('r3')]
    const direct = linked(one, two, 'l1')
    const around = [linked(one, three, 'l2'), linked(three, two, 'l3')]
    const dialer = new TestDialer(two, controller)
    await controller.lay(circuit, [one, two], [direct])
    const client = one.attach(controller, circuit, false)
    const terms = { attempt: REROUTE_ATTEMPT, isReroute: true }
    await controller.lay(circuit, [one, three, two], around, terms)
    client.send('around')
    await eventually(() => dialer.placeOf(circuit).bodies).toEqual(['around'])
    expect(three.forwarder.figures()).toMatchObject({ 'forwarder.messages': 1 })
    // Data still in flight on the first path arrives as well.
    one.forwarder
      .circuit(circuit.id)
      ?.route({ address: circuit.ingress, peerId: null }, { address: 'l1', peerId: 'r2' })
    client.send('still on the first')
    await eventually(() => dialer.placeOf(circuit).bodies).toEqual(['around', 'still on the first'])
  })

  test('over a link that is silent for unresponsiveLinkTimeout is refused for new circuits, and existing circuits continue', async () => {
    const [one, two] = [router('r1', 'unresponsiveLinkTimeout: 7s'), router('r2')]
    new TestDialer(two, controller)
    const link = linked(one, two, 'l1')
    let silentForMs = 0
    one.forwarder.addLink({
      id: link.id,
      peerId: two.id,
      get silentForMs() {
        return silentForMs
      },
      trySend: (outgoing, bytes) => link.ofFirst.trySend(outgoing, bytes),
      onceWritable: (callback) => link.ofFirst.onceWritable(callback),
    })
    const [before] = await controller.lay(circuit, [one, two], [link])
    expect(before).toMatchObject({ isSuccess: true })
    silentForMs = 7000
    const [refused] = await controller.lay(endsOf('late'), [one, two], [link])
    expect(refused).toMatchObject({ isSuccess: false, errorCode: dialErrorCodes.invalidLink })
    const [again] = await controller.lay(circuit, [one, two], [link], { isReroute: true })
    expect(again).toMatchObject({ isSuccess: true })
    silentForMs = 6999
    const [later] = await controller.lay(endsOf('later'), [one, two], [link])
    expect(later).toMatchObject({ isSuccess: true })
  })

  test('over an unknown link fails, and the router reports the link to every controller', async () => {
    const one = router('r1')
    const other = new TestController('c2')
    other.connect(one)
    const [answer] = await controller.lay(circuit, [one, router('r2')], [{ id: 'gone' }])
    expect(answer).toMatchObject({ isSuccess: false, errorCode: dialErrorCodes.invalidLink })
    for (const each of [controller, other]) {
      await eventually(() => each.faults(one)).toEqual([{ subject: 2, ids: ['gone'] }])
    }
    expect(one.forwarder.figures()).toMatchObject({ 'forwarder.circuits': 0 })
  })

  test('to an endpoint address that does not exist on this router fails', async () => {
    const one = router('r1')
    const [answer] = await controller.lay(circuit, [one], [], { isReroute: true })
    expect(answer).toMatchObject({ isSuccess: false, errorCode: dialErrorCodes.other })
    expect(answer?.error).toContain('egress of circuit1')
  })

  test('for a binding that this router does not dial fails as a misconfigured terminator', async () => {
    const [answer] = await controller.lay(circuit, [router('r1')], [], { binding: 'udp' })
    expect(answer).toMatchObject({
      isSuccess: false,
      errorCode: dialErrorCodes.misconfiguredTerminator,
      error: 'this router has no dialer for the binding udp',
    })
  })

  test.each([
    [
      'ECONNREFUSED',
      Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
      dialErrorCodes.refused,
    ],
    ['EMFILE', Object.assign(new Error('x'), { code: 'EMFILE' }), dialErrorCodes.outOfResources],
    ['ENOTFOUND', Object.assign(new Error('x'), { code: 'ENOTFOUND' }), dialErrorCodes.unknownName],
    ['no such host', new Error('lookup x: no such host'), dialErrorCodes.unknownName],
    ['ETIMEDOUT', Object.assign(new Error('x'), { code: 'ETIMEDOUT' }), dialErrorCodes.timedOut],
    [
      'a port that is not allowed',
      new Error('port 1 not in allowed port ranges'),
      dialErrorCodes.portNotAllowed,
    ],
    [
      'a rejection by the application',
      new Error('rejected by application'),
      dialErrorCodes.rejected,
    ],
    [
      'an error that has its own code',
      new DialFailure(dialErrorCodes.invalidTerminator, 'x'),
      dialErrorCodes.invalidTerminator,
    ],
    ['any other error', new Error('x'), dialErrorCodes.other],
  ])(
    'whose dial fails with %s gets a response with the error code for that failure',
    async (_, error, errorCode) => {
      const one = router('r1')
      one.forwarder.registerDialer('test', { dial: () => Promise.reject(error) })
      const [answer] = await controller.lay(circuit, [one], [])
      expect(answer).toMatchObject({ isSuccess: false, errorCode, error: error.message })
      expect(one.forwarder.figures(), 'no circuit is left').toMatchObject({
        'forwarder.circuits': 0,
      })
    },
  )

  test('fails at its deadline if the dialer hangs', async () => {
    const one = router('r1')
    const aborted: boolean[] = []
    one.forwarder.registerDialer('test', {
      dial: (_, signal) => {
        signal.addEventListener('abort', () => aborted.push(true))
        return new Promise(() => undefined)
      },
    })
    const [answer] = await controller.lay(circuit, [one], [], { timeoutMs: 30 })
    expect(answer).toMatchObject({ isSuccess: false, errorCode: dialErrorCodes.timedOut })
    expect(aborted).toEqual([true])
  })

  test('is refused if the dial queue is full, and the routes in the queue are still dialed', async () => {
    const one = router('r1', 'xgressDialWorkerCount: 1, xgressDialQueueLength: 1')
    const { promise, resolve } = Promise.withResolvers<ReadonlyMap<number, Uint8Array>>()
    const dialed: string[] = []
    one.forwarder.registerDialer('test', {
      dial: ({ circuit: { id, address } }) => {
        dialed.push(id)
        one.attach(controller, { id, ingress: '', egress: address }, true)
        return promise
      },
    })
    const answers = ['a', 'b', 'c'].map((id) => controller.lay(endsOf(id), [one], []))
    expect((await answers[2])?.[0]).toMatchObject({
      isSuccess: false,
      errorCode: dialErrorCodes.outOfResources,
    })
    resolve(new Map())
    expect((await answers[0])?.[0]).toMatchObject({ isSuccess: true })
    expect((await answers[1])?.[0]).toMatchObject({ isSuccess: true })
    expect(dialed).toEqual(['a', 'b'])
  })

  test('fails, and leaves no state, if its circuit is removed while the terminator is dialed', async () => {
    const one = router('r1')
    const { promise, resolve } = Promise.withResolvers<AbortSignal>()
    one.forwarder.registerDialer('test', {
      dial: (_, signal) => {
        resolve(signal)
        return new Promise(() => undefined)
      },
    })
    const answer = controller.lay(circuit, [one], [])
    const signal = await promise
    controller.unroute(one, circuit.id, true)
    expect((await answer)[0]).toMatchObject({ isSuccess: false })
    expect(signal.aborted).toBe(true)
    const late = one.attach(controller, circuit, true)
    await eventually(() => late.isUnrouted).toBe(true)
    expect(one.forwarder.figures()).toMatchObject({ 'forwarder.circuits': 0 })
  })

  test('to a terminator leads to a dial only after the configured xgressDialDwellTime', async () => {
    const one = router('r1', 'xgressDialDwellTime: 40')
    const dialer = new TestDialer(one, controller)
    const began = performance.now()
    await controller.lay(circuit, [one], [])
    expect(performance.now() - began).toBeGreaterThanOrEqual(38)
    expect(dialer.placeOf(circuit)).toBeDefined()
  })

  test('with a circuit ID that is too long is refused', async () => {
    const one = router('r1')
    const long = endsOf('x'.repeat(200))
    const [answer] = await controller.lay(long, [one], [])
    expect(answer?.contentType, 'a result').toBe(2)
    expect(one.forwarder.figures()).toMatchObject({ 'forwarder.circuits': 0 })
  })
})

describe('A circuit at a router', () => {
  test('ends immediately for both applications if the controller requests this, and delivers no later data', async () => {
    const one = router('r1')
    const dialer = new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    const client = one.attach(controller, circuit, false)
    controller.unroute(one, circuit.id, true)
    await eventually(() => client.isUnrouted && dialer.placeOf(circuit).isUnrouted).toBe(true)
    client.send('too late')
    expect(dialer.placeOf(circuit).bodies).toEqual([])
  })

  test('continues while frames arrive, up to a time limit, if the controller removes it gracefully', async () => {
    let nowMs = 0
    const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
    const one = router('r1', 'xgressCloseCheckInterval: 20', clock)
    const dialer = new TestDialer(one, controller)
    const ends = [circuit, endsOf('never quiet')] as const
    for (const each of ends) await controller.lay(each, [one], [])
    const [quiet, busy] = ends.map((each) => one.attach(controller, each, false))
    for (const { id } of ends) controller.unroute(one, id, false)
    await controller.lay(endsOf('later'), [one], [])
    const pass = async (ms: number): Promise<void> => {
      nowMs += ms
      busy?.send('still')
      const looks = 2
      for (let look = 0; look < looks; look += 1) await new Promise((done) => setTimeout(done, 25))
    }
    for (let at = 0; at < 6; at += 1) {
      quiet?.send('still')
      await pass(15)
    }
    expect(quiet?.isUnrouted).toBe(false)
    expect(dialer.placeOf(circuit).bodies).toHaveLength(6)
    await pass(19)
    await pass(19)
    await eventually(() => quiet?.isUnrouted).toBe(true)
    expect(busy?.isUnrouted).toBe(false)
    await pass(60_000)
    await eventually(() => busy?.isUnrouted).toBe(true)
  })

  test('rejects a circuit endpoint for which there is no route', async () => {
    const one = router('r1')
    new TestDialer(one, controller)
    await controller.lay(circuit, [one], [])
    for (const ends of [endsOf('circuit2'), { ...circuit, ingress: 'another' }]) {
      const place = one.attach(controller, ends, false)
      await eventually(() => place.isUnrouted).toBe(true)
    }
  })

  test('that the router does not know can be removed without an error', async () => {
    const one = router('r1')
    controller.send(one, unroute('nothing', true))
    controller.send(one, unroute('nothing', false))
    new TestDialer(one, controller)
    expect((await controller.lay(circuit, [one], []))[0]).toMatchObject({ isSuccess: true })
  })
})
