import { afterEach, expect, test } from 'vitest'

import { edgeLimits } from '../../src/router/edge/limits.ts'
import { EdgeBench, serviceToken } from '../router/edge/support.ts'
import { endsOf, TestController, TestDialer, TestRouter } from '../router/forward/support.ts'
import { eventually } from '../router/support.ts'

// The attack: a client with a stolen identity opens many channels at a router, and dials slow
// targets over each channel, until its dials use all slots at the controller, or all workers of the
// host's router, and no other client can dial.

const CONNECT = 60_783
const CREATE_CIRCUIT = 20_218
const { connectsAtOnceMax, connectsWaitingMax } = edgeLimits

let close: () => Promise<void> | void
afterEach(() => close())

test('All channels of an identity together can have only a limited number of pending requests at a controller', async () => {
  const bench = await EdgeBench.open()
  close = () => bench.close()
  const mallory = await bench.person('mallory')
  bench.controller.tellSessions([mallory])
  const channels = await Promise.all(Array.from({ length: 16 }, () => bench.connect(mallory)))
  for (const channel of channels) {
    for (let id = 1; id <= connectsAtOnceMax; id += 1) channel.send(CONNECT, id, serviceToken('s1'))
  }
  // The channel handles messages in order, so the answer shows that the router has read all earlier
  // requests.
  await Promise.all(channels.map(({ channel }) => channel.request({ contentType: 3 })))
  expect(bench.controller.ofType(CREATE_CIRCUIT)).toHaveLength(connectsAtOnceMax)
  const ann = await bench.admitted('ann')
  ann.send(CONNECT, 1, serviceToken('s2'))
  await eventually(() => bench.controller.ofType(CREATE_CIRCUIT)).toHaveLength(
    connectsAtOnceMax + 1,
  )
})

test('Dials that exceed the queue of an identity fail, and are logged once', async () => {
  const bench = await EdgeBench.open()
  close = () => bench.close()
  const mallory = await bench.person('mallory')
  bench.controller.tellSessions([mallory])
  const channels = await Promise.all([bench.connect(mallory), bench.connect(mallory)])
  const ofEach = connectsWaitingMax / 2 + 8
  for (const channel of channels) {
    for (let id = 1; id <= ofEach; id += 1) channel.send(CONNECT, id, serviceToken('s1'))
  }
  const refused = () => channels.flatMap((channel) => channel.ofType(60_785))
  await eventually(() => refused().length).toBe(2 * ofEach - connectsWaitingMax)
  const [first] = refused()
  expect(Buffer.from(first?.body ?? []).toString()).toBe('too many requests wait')
  expect(bench.logged('too many dials of a client wait')).toHaveLength(1)
})

test('The dials of a client never occupy all dial workers of the router', async () => {
  const router = new TestRouter('r1', 'xgressDialWorkerCount: 8, xgressDialQueueLength: 40')
  close = () => router.forwarder.stop()
  const controllers = ['c1', 'c2'].map((id) => new TestController(id))
  for (const controller of controllers) controller.connect(router)
  const [first = new TestController(), second = first] = controllers
  const dialer = new TestDialer(router, second)
  const answered = Promise.withResolvers<never>()
  let slow = 0
  router.forwarder.registerDialer('slow', {
    dial: () => {
      slow += 1
      return answered.promise
    },
  })
  const ofMallory = { binding: 'slow', tags: { clientId: 'mallory' } }
  const asked = Array.from({ length: 100 }, (_, at) =>
    (at % 2 === 0 ? first : second).lay(endsOf(`of mallory ${at}`), [router], [], ofMallory),
  )
  let refused = 0
  for (const each of asked) void each.then(() => (refused += 1))
  await eventually(() => refused).toBeGreaterThan(50)
  expect(slow).toBe(6)
  expect(router.logged('too many dials wait')).toHaveLength(1)
  const ends = endsOf('of ann')
  const [answer] = await second.lay(ends, [router], [], { tags: { clientId: 'ann' } })
  expect(answer?.isSuccess).toBe(true)
  expect(dialer.placeOf(ends).isUnrouted).toBe(false)
  answered.reject(new Error('the target is gone'))
  await Promise.all(asked)
})
