import { afterEach, beforeEach, expect, test } from 'vitest'

import { eventually } from '../support.ts'
import { endsOf, linked, TestController, TestDialer, TestRouter } from './support.ts'

// Goal: the metrics of the data path count the traffic of a router, by side and direction. Method:
// two routers and a link.

const controller = new TestController()
const routers: TestRouter[] = []
let one: TestRouter
let two: TestRouter
beforeEach(() => {
  one = new TestRouter('r1')
  two = new TestRouter('r2')
  routers.push(one, two)
  for (const router of routers) controller.connect(router)
})
afterEach(() => {
  for (const { forwarder } of routers.splice(0)) forwarder.stop()
})

const figuresOf = ({ forwarder }: TestRouter): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(forwarder.figures()).filter(
      ([name, figure]) => /^(?:ingress|egress|fabric)\./.test(name) && figure > 0,
    ),
  )

test('messages and bytes of circuits are counted once when they enter and once when they leave the router', async () => {
  const circuit = endsOf('circuit1')
  const dialer = new TestDialer(two, controller)
  const link = linked(one, two, 'l1')
  await controller.lay(circuit, [one, two], [link])
  const ingress = one.attach(controller, circuit, false)
  const egress = dialer.placeOf(circuit)
  ingress.send('hello')
  await eventually(() => egress.bodies).toEqual(['hello'])
  egress.send('ok')
  await eventually(() => ingress.bodies).toEqual(['ok'])
  expect(figuresOf(one)).toEqual({
    'fabric.rx.msgs': 1,
    'fabric.rx.bytes': 2,
    'fabric.tx.msgs': 1,
    'fabric.tx.bytes': 5,
    'ingress.rx.msgs': 1,
    'ingress.rx.bytes': 5,
    'ingress.tx.msgs': 1,
    'ingress.tx.bytes': 2,
  })
  expect(figuresOf(two)).toEqual({
    'fabric.rx.msgs': 1,
    'fabric.rx.bytes': 5,
    'fabric.tx.msgs': 1,
    'fabric.tx.bytes': 2,
    'egress.rx.msgs': 1,
    'egress.rx.bytes': 2,
    'egress.tx.msgs': 1,
    'egress.tx.bytes': 5,
  })
})
