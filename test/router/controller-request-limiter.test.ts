import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, expect, test } from 'vitest'

import {
  CreateTerminatorResult,
  CreateTerminatorV2AnswerSchema,
  CreateTerminatorV2Schema,
} from '../../proto/gen/router_pb.ts'
import { encodeFlag, encodeText } from '../../src/channel/headers.ts'
import { ControllerRequestLimiter } from '../../src/router/controllers/controller-request-limiter.ts'
import { EdgeBench, serviceToken } from './edge/support.ts'
import { eventually } from './support.ts'
import { serviceOf, TunnelStage } from './tunnel/support.ts'

// Goal: controllers receive at most rateLimitedWorkerCount concurrent changes of terminators, and
// at most rateLimitedQueueLength changes wait.

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

test('operations of a router above the limits of running and queued operations are refused', async () => {
  const operations = new ControllerRequestLimiter({
    rateLimitedWorkerCount: 1,
    rateLimitedQueueLength: 1,
  })
  const first = Promise.withResolvers<string>()
  const begun: string[] = []
  const asked = ['a', 'b', 'c'].map((name) =>
    operations.run(name, () => {
      begun.push(name)
      return name === 'a' ? first.promise : Promise.resolve(name)
    }),
  )
  await expect(asked[2]).rejects.toThrow(
    'too many operations wait (forwarder.rateLimitedQueueLength)',
  )
  expect(begun).toEqual(['a'])
  first.resolve('done')
  expect(await Promise.all(asked.slice(0, 2))).toEqual(['done', 'b'])
})

test('terminators of hosting clients are requested one after the other', async () => {
  const bench = await EdgeBench.open({ sections: 'forwarder: {rateLimitedWorkerCount: 1}' })
  closing.push(() => bench.close())
  const { controller } = bench
  controller.terminators = () => null
  const asked = (): string[] =>
    controller
      .ofType(20_216)
      .map(({ body }) => fromBinary(CreateTerminatorV2Schema, body ?? new Uint8Array()).address)
  const host = await bench.admitted('host')
  for (const id of [3, 4, 5]) {
    const listener = [1021, encodeText(`listener ${id}`)] as const
    await host.request(60_790, id, serviceToken('bind1'), [[1024, encodeFlag(true)], listener])
  }
  for (let count = 1; count <= 3; count += 1) {
    await eventually(asked).toHaveLength(count)
    const terminatorId = asked().at(-1) ?? ''
    const answer = { terminatorId, result: CreateTerminatorResult.SUCCESS }
    const message = create(CreateTerminatorV2AnswerSchema, answer)
    controller.tell({
      contentType: 20_217,
      body: toBinary(CreateTerminatorV2AnswerSchema, message),
    })
  }
  expect(new Set(asked()).size).toBe(3)
  await eventually(() => bench.logged('terminator of a client established')).toHaveLength(3)
})

test('the request for a terminator to which no controller responds frees its slot after a timeout', async () => {
  const bench = await EdgeBench.open({ sections: 'forwarder: {rateLimitedWorkerCount: 1}' })
  closing.push(() => bench.close())
  bench.controller.terminators = () => null
  const host = await bench.admitted('host')
  for (const id of [3, 4]) {
    const listener = [1021, encodeText(`listener ${id}`)] as const
    await host.request(60_790, id, serviceToken('bind1'), [listener])
  }
  await eventually(() => bench.controller.ofType(20_216)).toHaveLength(1)
  bench.aheadMs = 31_000
  await eventually(() => bench.controller.ofType(20_216)).toHaveLength(2)
})

test('terminators of the tunneler are requested one after the other', async () => {
  const events = ['s1', 's2', 's3'].flatMap((id) =>
    serviceOf(id, { 'host.v1': { protocol: 'tcp', address: '127.0.0.1', port: 80 } }),
  )
  const forwarder = 'forwarder: {rateLimitedWorkerCount: 1}'
  const stage = await TunnelStage.create(events, '{mode: host}', forwarder, (controller) => {
    controller.holdsCreations = true
  })
  closing.push(() => stage.close())
  for (let count = 1; count <= 3; count += 1) {
    await eventually(() => stage.controller.held).toHaveLength(1)
    stage.controller.answerHeld()
    await eventually(() => stage.network.logged('service hosted')).toHaveLength(count)
  }
})
