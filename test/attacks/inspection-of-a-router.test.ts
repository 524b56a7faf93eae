import { create, toBinary } from '@bufbuild/protobuf'
import { afterAll, afterEach, expect, test, vi } from 'vitest'

import { InspectAnswerSchema } from '../../proto/gen/router_pb.ts'
import { encodeInt32 } from '../../src/channel/headers.ts'
import { createRouterInspections } from '../../src/fabric/inspections.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { fabric } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { RouterStage } from '../fabric/stage.ts'

// The attack: the response of one router to an operator's inspection, or its silence, hides the
// responses of other routers.

const stage = new RouterStage()
const routerInspections = {
  own: {},
  ...createRouterInspections(stage.channels),
  terminators: () => Promise.resolve(null),
}
const { controller, root } = await controllerForFile({}, undefined, { routerInspections })
afterEach(() => vi.useRealTimers())
afterAll(() => stage.channels.stop())

async function connect(id: string): Promise<Pipe> {
  const connectedAt = controller.clock.nowMs()
  controller.live.channels.set(id, { id, name: id, connectedAt, address: '', version: '' })
  return await stage.dial(id)
}

async function inspected(pipe: Pipe): Promise<number> {
  while (pipe.ofType(1013).length === 0) await settle()
  return pipe.ofType(1013)[0]?.sequence ?? 0
}

async function answer(pipe: Pipe, body: Uint8Array): Promise<void> {
  const headers = new Map([[1, encodeInt32(await inspected(pipe))]])
  pipe.say({ contentType: 1014, body, headers })
}

function values(text: string): Uint8Array {
  const answered = [
    { name: 'links', value: text },
    { name: 'other', value: '{"a":[1]}' },
  ]
  return toBinary(InspectAnswerSchema, create(InspectAnswerSchema, { values: answered }))
}

test('an inspection returns the values of a router, although another router is silent, disconnected, or sends an invalid response or extremely nested values', async () => {
  const [honest, nested, invalid, silent] = [
    await connect('er1'),
    await connect('er2'),
    await connect('er3'),
    await connect('er4'),
  ]
  const gone = { id: 'er5', name: 'er5', connectedAt: 0, address: '', version: '' }
  controller.live.channels.set('er5', gone)
  // All timers, so that the timeout of the operator's request is measured by the same clock.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const body = { appRegex: '^er', requestedValues: ['links', 'other'] }
  const asked = root.call('POST', `${fabric}/inspections`, body)
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  await answer(honest, values('[]'))
  await answer(nested, values(deep))
  await answer(invalid, Uint8Array.of(255, 255, 255))
  await inspected(silent)
  await settle()
  await vi.advanceTimersByTimeAsync(routerLimits.routerInspectionTimeoutMs)
  const reply = await asked
  expect(reply.status, reply.text.slice(0, 200)).toBe(200)
  const found = reply.body as unknown as { errors: string[]; success: boolean; values: unknown }
  expect([found.success, found.values]).toEqual([
    false,
    [
      { appId: 'er1', name: 'links', value: [] },
      { appId: 'er1', name: 'other', value: { a: [1] } },
      { appId: 'er2', name: 'links', value: deep },
      { appId: 'er2', name: 'other', value: { a: [1] } },
    ],
  ])
  expect(found.errors.toSorted()).toEqual([
    expect.stringMatching(/^er3: /),
    `er4: no reply within ${routerLimits.routerInspectionTimeoutMs} ms`,
    'er5: is not connected',
  ])
})
