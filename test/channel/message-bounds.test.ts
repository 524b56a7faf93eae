import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import {
  ConnectEventsSchema,
  LinkListenersSchema,
  MetricsSchema,
  RouterLinksSchema,
} from '../../proto/gen/router_pb.ts'
import { messageBounds } from '../../src/channel/message-bounds.ts'
import {
  protobufBodyFault,
  decodeIncrementally,
  FIELD_ELEMENTS_MAX,
  MALFORMED_BODY_FAULT,
} from '../../src/channel/wire-scan.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { controlContentType } from '../../src/channel/messages/control.ts'
import { empties, heaviestBodies, wrapped } from '../fabric/heavy-bodies.ts'

/**
 * Types without a bound: only a controller or only a router sends them, they have no body, or no
 * code reads them.
 */
const unread = new Set<number>([
  1, 1005, 1006, 1010, 1039, 1040, 1042, 1043, 1055, 20_000, 20_002, 20_102, 20_200, 20_202, 20_204,
  20_205, 20_206, 20_217, 20_219, 20_301, 20_500, 20_501, 20_506, 20_221, 20_223, 20_400, 20_402,
  20_404, 20_406, 20_409, 20_411, 20_414, 20_504,
])

test('each message type that the controller decodes has a maximum size', () => {
  const bounded = new Set<number>(Object.values(messageBounds).map(({ number }) => number))
  const numbers = Object.values(controlContentType)
  expect(numbers.filter((number) => !bounded.has(number) && !unread.has(number))).toEqual([])
})

test('messages of routers with several thousand links, circuits and clients are below their maximum sizes', () => {
  const byNumber = new Map(
    Object.values(messageBounds).map((each) => [each.number as number, each]),
  )
  for (const [name, number, body] of heaviestBodies()) {
    const { schema = null, elementsMax = 0, bytesMax = 0 } = byNumber.get(number) ?? {}
    expect(body.length, name).toBeLessThanOrEqual(bytesMax)
    if (schema !== null) expect(protobufBodyFault(schema, body, elementsMax), name).toBeNull()
  }
})

function last<T>(steps: Generator<void, T>): { readonly value: T; readonly steps: number } {
  for (let count = 1; ; count += 1) {
    const next = steps.next()
    if (next.done === true) return { value: next.value, steps: count }
  }
}

test('decoding a message in steps gives the same result as decoding it in one step', () => {
  const links = Array.from({ length: 2000 }, (_, at) => ({
    id: `l${at}`,
    destRouterId: 'er2',
    iteration: at,
    connState: { stateIteration: 1, conns: [{ type: 'link.default', localAddr: `a${at}` }] },
  }))
  const sent = create(RouterLinksSchema, { links, fullRefresh: true })
  const decoded = last(decodeIncrementally(RouterLinksSchema, toBinary(RouterLinksSchema, sent)))
  expect(decoded.value).toEqual(sent)
  expect(decoded.steps).toBeGreaterThan(20)

  const histograms = Object.fromEntries(
    Array.from({ length: 500 }, (_, at) => [`h${at}`, { count: BigInt(at), mean: 0.5 }]),
  )
  const figures = create(MetricsSchema, { eventId: 'e', histograms, timestamp: { seconds: 5n } })
  expect(last(decodeIncrementally(MetricsSchema, toBinary(MetricsSchema, figures))).value).toEqual(
    figures,
  )
})

test('each field of a message counts as one element, and a nested message as four more elements', () => {
  const listener = { address: 'a', protocol: 'p', groups: ['g', 'h'], localBinding: 'b' }
  const body = toBinary(LinkListenersSchema, create(LinkListenersSchema, { listeners: [listener] }))
  expect(protobufBodyFault(LinkListenersSchema, body, 10)).toBeNull()
  expect(protobufBodyFault(LinkListenersSchema, body, 9)).toBe('more than 9 elements')
})

test('the element count of a message includes the fields that the decoder creates for absent members', () => {
  const { fields } = LinkListenersSchema
  const within = fields.find(({ number }) => number === 1)?.message?.members.length ?? 0
  const body = empties(1, 2)
  expect(protobufBodyFault(LinkListenersSchema, body, 2 * (1 + 4 + within))).toBeNull()
  expect(protobufBodyFault(LinkListenersSchema, body, 2 * (1 + 4 + within) - 1)).toContain(
    'more than',
  )
  // Decoding creates the value of a map entry even if it is absent on the wire.
  const figures = empties(8, 1)
  const value = MetricsSchema.fields.find(({ number }) => number === 8)
  const made = value?.fieldKind === 'map' ? (value.message?.members.length ?? 0) : 0
  expect(made).toBeGreaterThan(1)
  expect(protobufBodyFault(MetricsSchema, figures, 1 + 4 + 4 + made)).toBeNull()
  expect(protobufBodyFault(MetricsSchema, figures, 1 + 4 + 4 + made - 1)).toContain('more than')
})

test('a message is refused if one of its fields has more content than a single decoding step may process', () => {
  const events = [{ connectTimes: Array.from({ length: FIELD_ELEMENTS_MAX / 5 }, () => ({})) }]
  const body = toBinary(ConnectEventsSchema, create(ConnectEventsSchema, { events }))
  const { elementsMax } = messageBounds.connectEvents
  expect(protobufBodyFault(ConnectEventsSchema, body, elementsMax)).toContain('in one field')
})

test('invalid fields, including protobuf groups, are refused as malformed', () => {
  const judge = (...bytes: number[]) =>
    protobufBodyFault(RouterLinksSchema, Uint8Array.from(bytes), 100)
  expect(judge()).toBeNull()
  expect(judge(0x0a)).toBe(MALFORMED_BODY_FAULT)
  expect(judge(0x0a, 0x05, 0x00)).toBe(MALFORMED_BODY_FAULT)
  expect(judge(0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f)).toBe(MALFORMED_BODY_FAULT)
  expect(judge(0x0b, 0x0c)).toBe(MALFORMED_BODY_FAULT)
  expect(judge(0x09, 1, 2, 3)).toBe(MALFORMED_BODY_FAULT)
  expect(judge(...Array.from({ length: 11 }, () => 0x80))).toBe(MALFORMED_BODY_FAULT)
  // A number instead of a message: a decoder would use it as the length of a message.
  expect(judge(0x08, 0x01, 0x00)).toBe(MALFORMED_BODY_FAULT)
  // A length that exceeds the field that contains it.
  expect(judge(0x0a, 0x02, 0x0a, 0x05, 0, 0, 0, 0, 0)).toBe(MALFORMED_BODY_FAULT)
})

test('random bytes are rejected or decoded, and have no other effect', () => {
  const random = seededRandom(7)
  for (let at = 0; at < 20_000; at += 1) {
    const bytes = Uint8Array.from({ length: random.integer(0, 60) }, () => random.integer(0, 40))
    const body = random.next() < 0.5 ? bytes : wrapped(1, bytes)
    if (protobufBodyFault(RouterLinksSchema, body, 1000) !== null) continue
    try {
      last(decodeIncrementally(RouterLinksSchema, body))
    } catch (error) {
      expect(error).toBeInstanceOf(Error)
      expect(String(error)).not.toContain('premature EOF')
    }
  }
})
