import { create, toBinary, fromBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { InspectAnswerSchema, InspectRequestSchema } from '../../../proto/gen/router_pb.ts'
import { encodeText } from '../../../src/channel/headers.ts'
import type { ModelEvent } from '../../../src/ports/router-model.ts'
import { readSubscribeRequest, type SubscribeRequest } from '../../../src/channel/messages/model.ts'
import { eventually, type ScriptedController, TestNetwork } from '../support.ts'
import { changesBody, wholeBody } from './support.ts'

// Goal: a router follows the data model at one controller, and at another one if the first fails;
// it applies no change twice and misses none. Method: a real router, and controllers whose answers
// the test gives.

let network: TestNetwork
beforeEach(async () => {
  network = await TestNetwork.create()
})
afterEach(() => network.close())

const service = (id: string): ModelEvent => ({
  kind: 'service',
  action: 'create',
  value: { id, name: id, encryptionRequired: false, configs: [] },
})

const asked = (controller: ScriptedController): SubscribeRequest[] =>
  controller.ofType(20_505).map(({ body }) => readSubscribeRequest(body))

/** @returns the ID of the subscription. */
async function subscribed(controller: ScriptedController, count = 1): Promise<string> {
  await eventually(() => asked(controller).length).toBe(count)
  return asked(controller).at(-1)?.subscriptionId ?? ''
}

const of = (id: string) => new Map([[1026, encodeText(id)]])

async function indexAt(controller: ScriptedController): Promise<unknown> {
  const message = create(InspectRequestSchema, { requestedValues: ['router-data-model-index'] })
  const body = toBinary(InspectRequestSchema, message)
  const reply = await controller.channel?.request({ contentType: 1013, body })
  const { values } = fromBinary(InspectAnswerSchema, reply?.body ?? new Uint8Array())
  return JSON.parse(values[0]?.value ?? 'null')
}

const eventuallyAt = (controller: ScriptedController) =>
  expect.poll(() => indexAt(controller), { timeout: 20_000 })

test('a router requests the full data model, applies later changes, and reports the index of its data model', async () => {
  const a = await network.controller('a')
  await network.running([a.address])
  const id = await subscribed(a)
  expect(asked(a)[0]).toMatchObject({ index: 0n, timelineId: '', renews: false, seconds: 300 })
  expect(await indexAt(a)).toEqual({ index: 0, timeline: '' })
  a.send({ contentType: 20_500, headers: of(id), body: await wholeBody([service('s1')], 7) })
  a.send({ contentType: 20_501, headers: of(id), body: changesBody([service('s2')], 9, 7) })
  await eventuallyAt(a).toEqual({ index: 9, timeline: 'timeline-1' })
})

test('a router that has missed a change subscribes again to the data model from its own index', async () => {
  const a = await network.controller('a')
  await network.running([a.address])
  const id = await subscribed(a)
  a.send({ contentType: 20_500, headers: of(id), body: await wholeBody([], 7) })
  a.send({ contentType: 20_501, headers: of(id), body: changesBody([service('s2')], 9, 8) })
  const next = await subscribed(a, 2)
  expect(asked(a)[1]).toMatchObject({ index: 7n, timelineId: 'timeline-1', renews: false })
  expect(next).not.toBe(id)
  a.send({ contentType: 20_501, headers: of(id), body: changesBody([service('s2')], 9, 7) })
  a.send({ contentType: 20_501, headers: of(next), body: changesBody([service('s2')], 8, 7) })
  await eventuallyAt(a).toEqual({ index: 8, timeline: 'timeline-1' })
})

test('a router subscribes again to the data model when a controller has a higher index but has sent nothing', async () => {
  const a = await network.controller('a')
  await network.running([a.address])
  const id = await subscribed(a)
  a.send({ contentType: 20_500, headers: of(id), body: await wholeBody([], 7) })
  await eventuallyAt(a).toEqual({ index: 7, timeline: 'timeline-1' })
  const index = new Uint8Array(8)
  index[0] = 8
  a.send({ contentType: 20_506, headers: new Map([[1025, index]]) })
  await subscribed(a, 2)
})

test('a router subscribes to the data model at one controller, and at another one if the first disconnects', async () => {
  const [a, b] = [await network.controller('a'), await network.controller('b')]
  await network.running([a.address, b.address])
  await eventually(() => [a.isConnected, b.isConnected]).toEqual([true, true])
  await eventually(() => asked(a).length + asked(b).length).toBe(1)
  const [first, second] = asked(a).length === 1 ? [a, b] : [b, a]
  const id = await subscribed(first)
  first.send({ contentType: 20_500, headers: of(id), body: await wholeBody([service('s1')], 7) })
  // The router ignores changes from another controller.
  second.send({ contentType: 20_501, headers: of(id), body: changesBody([service('s2')], 9, 7) })
  await eventuallyAt(first).toEqual({ index: 7, timeline: 'timeline-1' })
  await first.close()
  const next = await subscribed(second)
  expect(asked(second)[0]).toMatchObject({ index: 7n, timelineId: 'timeline-1' })
  second.send({ contentType: 20_501, headers: of(next), body: changesBody([service('s3')], 9, 7) })
  await eventuallyAt(second).toEqual({ index: 9, timeline: 'timeline-1' })
})

test('after a malformed message about the data model, the router subscribes again and keeps its channel', async () => {
  const a = await network.controller('a')
  await network.running([a.address])
  const id = await subscribed(a)
  a.send({ contentType: 20_500, headers: of(id), body: Uint8Array.of(0x1a, 1, 0xff) })
  await subscribed(a, 2)
  expect(a.isConnected).toBe(true)
})
