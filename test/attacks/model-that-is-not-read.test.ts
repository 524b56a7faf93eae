import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { SubscribeToDataModelSchema } from '../../proto/gen/router_pb.ts'
import type { ModelEvent, RouterModel } from '../../src/ports/router-model.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { ModelHandler } from '../../src/fabric/model/model-handler.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { RouterStage } from '../fabric/stage.ts'
import { eventually } from '../support/eventually.ts'

// The attack: routers request the data model and do not read it, so that the controller sends it to
// no other router.

const services = Array.from({ length: 50 }, (_, at): ModelEvent => {
  const value = { id: `s${at}`, name: `service ${at}`, encryptionRequired: false, configs: [] }
  return { kind: 'service', action: 'create', value }
})
const model: RouterModel = {
  appliedIndex: 10,
  all: () => services,
  identity: () => undefined,
  disabledForNow: () => [],
  follow: () => () => undefined,
}

let stage: RouterStage
let nowMs: number

beforeEach(() => {
  stage = new RouterStage()
  nowMs = 1_000_000
  stage.channels.add(
    new ModelHandler({
      model,
      timelineId: () => 'timeline-1',
      isLeader: () => true,
      certificates: () => ({ controllers: [], anchors: [] }),
      connections: () => stage.channels.connections(),
      clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
      log: { info: () => undefined, warn: () => undefined },
    }),
  )
})
afterEach(() => stage.channels.stop())

async function subscribe(pipe: Pipe, subscriptionId: string): Promise<void> {
  const message = create(SubscribeToDataModelSchema, {
    subscriptionId,
    timelineId: 'timeline-1',
    subscriptionDurationSeconds: 300,
  })
  const body = toBinary(SubscribeToDataModelSchema, message)
  pipe.say({ contentType: 20_505, body })
  await settle()
}

async function reader(id: string): Promise<Pipe> {
  const pipe = await stage.dial(id)
  await subscribe(pipe, 'first')
  return pipe
}

/** A router that requests the model this many times and then reads nothing. */
async function deaf(id: string, times: number): Promise<Pipe> {
  const pipe = await stage.dial(id)
  pipe.isRead = false
  for (let at = 0; at < times; at += 1) await subscribe(pipe, `subscription ${at}`)
  return pipe
}

const isServed = (pipe: Pipe): boolean => pipe.ofType(20_500).length === 1

test('a router that requests the data model repeatedly occupies only one of the controller’s sending slots', async () => {
  await deaf('deaf', 3 * routerLimits.modelSendsMax)
  const pipe = await reader('honest')
  await eventually(() => expect(isServed(pipe)).toBe(true))
})

test('routers that do not read the data model lose their sending slots after a timeout, and other routers receive the data model', async () => {
  const silent: Pipe[] = []
  for (let at = 0; at < routerLimits.modelSendsMax; at += 1)
    silent.push(await deaf(`deaf ${at}`, 1))
  const pipe = await reader('honest')
  await settle()
  expect(isServed(pipe)).toBe(false)
  nowMs += routerLimits.modelSendTimeoutMs
  await eventually(() => expect(isServed(pipe)).toBe(true))
  expect(silent.map(({ destroyed }) => destroyed)).toEqual(silent.map(() => true))

  // After it reconnects, a router receives the model like any other router.
  const again = await reader('deaf 0')
  await eventually(() => expect(isServed(again)).toBe(true))
})
