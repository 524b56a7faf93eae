import { expect, expectTypeOf, test } from 'vitest'
import { type OperationBody, operationWithBody } from '../../src/api/http/operation.ts'
import { emptyResponse } from '../../src/api/http/responses/envelope.ts'
import { emptyBodySchema } from '../../src/api/schemas/envelope.ts'
import { objectSchema, type SchemaValue } from '../../src/api/schemas/typed-schema.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'

// `tsc` checks the types; each line that must not compile is marked as an expected error.

const order = objectSchema(
  'order',
  {
    id: { type: 'string', maxLength: 8 },
    count: { type: ['integer', 'null'] },
    verb: { type: 'string', enum: ['add', 'drop'] },
    parts: {
      type: 'array',
      items: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    },
    tags: { type: 'object' },
  },
  ['id', 'verb'],
)

interface Order {
  readonly id: string
  readonly verb: 'add' | 'drop'
  readonly count?: number | null
  readonly parts?: readonly { readonly name: string }[]
  readonly tags?: JsonObject
}

test('the TypeScript type of a body has the members, nulls and lists of its schema', () => {
  expectTypeOf<SchemaValue<typeof order.schema>>().toExtend<Order>()
  expectTypeOf<Order>().toExtend<SchemaValue<typeof order.schema>>()
  expect(order.schema.required).toEqual(['id', 'verb'])
  // @ts-expect-error a required member is one of the properties
  objectSchema('order', { id: { type: 'string' } }, ['name'])
})

test('the TypeScript type of a schema without required members has no required members', () => {
  const { schema } = objectSchema('choice', { id: { type: 'string' } })
  expectTypeOf<Record<never, never>>().toExtend<SchemaValue<typeof schema>>()
  expect(schema).toEqual({ type: 'object', properties: { id: { type: 'string' } } })
})

test('the TypeScript type of an optional body, or of a body that may be a string, has only optional members', () => {
  const body = { schema: order, isRequired: false, textTypes: ['text/plain'] } as const
  expectTypeOf<string>().toExtend<OperationBody<typeof body>>()
  expectTypeOf<Partial<Order>>().toExtend<OperationBody<typeof body>>()
})

test('the code of an operation can read only those members of a body that the schema names', () => {
  const operation = operationWithBody({
    operationId: 'order',
    summary: '',
    tag: '',
    apis: ['fabric'],
    method: 'POST',
    path: '/order',
    permission: 'admin',
    body: { schema: order, isRequired: true },
    success: 200,
    response: { kind: 'detail', schema: emptyBodySchema },
    refusals: [],
    // @ts-expect-error `amount` is no member
    handle: (_call, { id, amount }) => emptyResponse([id, amount]),
  })
  expect(operation.body?.schema).toBe(order)
})
