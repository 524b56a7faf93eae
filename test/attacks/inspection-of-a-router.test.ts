import { create, toBinary } from '@bufbuild/protobuf'
import { afterAll, expect, test } from 'vitest'

import { InspectAnswerSchema } from '../../proto/gen/router_pb.ts'
import { defaultApiLimits } from '../../src/api/limits.ts'
import { encodeInt32 } from '../../src/channel/headers.ts'
import { createRouterInspections } from '../../src/fabric/inspections.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { RouterStage } from '../fabric/stage.ts'
import { eventually } from '../support/eventually.ts'

// The attack: the response of one router to an operator's inspection, or its silence, hides the
// responses of other routers.

const stage = new RouterStage()
afterAll(() => stage.channels.stop())

test('a value of a router’s inspection with extremely deep nesting is returned as a string', async () => {
  const pipe = await stage.dial('er1')
  const asked = createRouterInspections(stage.channels).inspect('er1', ['links'])
  await eventually(() => expect(pipe.ofType(1013)).toHaveLength(1))
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  const answer = create(InspectAnswerSchema, {
    values: [
      { name: 'links', value: deep },
      { name: 'other', value: '{"a":[1]}' },
    ],
  })
  pipe.say({
    contentType: 1014,
    body: toBinary(InspectAnswerSchema, answer),
    headers: new Map([[1, encodeInt32(pipe.ofType(1013)[0]?.sequence ?? 0)]]),
  })
  const { values } = await asked
  expect(JSON.parse(JSON.stringify(values))).toEqual([
    { name: 'links', value: deep },
    { name: 'other', value: { a: [1] } },
  ])
})

test('the inspection of a router times out before the request that waits for it', () => {
  expect(routerLimits.routerInspectionTimeoutMs).toBeLessThan(defaultApiLimits.handlerTimeoutMs)
})
