import { create, toBinary } from '@bufbuild/protobuf'
import { afterAll, expect, test } from 'vitest'

import { InspectAnswerSchema } from '../../proto/gen/router_pb.ts'
import { defaultLimits } from '../../src/api/limits.ts'
import { int32Value } from '../../src/channel/headers.ts'
import { inspectionsOf } from '../../src/fabric/inspections.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { RouterStage } from '../fabric/stage.ts'
import { eventually } from '../support/eventually.ts'

// The attack: a router's answer to an operator, or its silence, hides the answers of the others.

const stage = new RouterStage()
afterAll(() => stage.channels.stop())

test('a value that nests without limit is returned as its text', async () => {
  const pipe = await stage.dial('er1')
  const asked = inspectionsOf(stage.channels).inspect('er1', ['links'])
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
    headers: new Map([[1, int32Value(pipe.ofType(1013)[0]?.sequence ?? 0)]]),
  })
  const { values } = await asked
  expect(JSON.parse(JSON.stringify(values))).toEqual([
    { name: 'links', value: deep },
    { name: 'other', value: { a: [1] } },
  ])
})

test('a router that does not answer becomes an error in the answer before the request times out', () => {
  expect(routerLimits.routerInspectionTimeoutMs).toBeLessThan(defaultLimits.handlerTimeoutMs)
})
