import { expect, test } from 'vitest'

import {
  NO_TRACE,
  encodeTrace,
  decodeTrace,
  parseTraceparent,
} from '../../src/lib/trace-context.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const parentSpanId = '00f067aa0ba902b7'
const given = `00-${traceId}-${parentSpanId}-01`

test('a valid traceparent header is used, with a new span ID and the sender’s sampled flag', () => {
  const trace = parseTraceparent(given)
  expect(trace).toMatchObject({ traceId, parentSpanId, isSampled: true })
  expect(trace.spanId).toMatch(/^[0-9a-f]{16}$/)
  expect(trace.spanId).not.toBe(parentSpanId)
  expect(parseTraceparent(given.replace(/01$/, '00')).isSampled).toBe(false)
  expect(parseTraceparent(given.replace(/01$/, '03')).isSampled).toBe(true)
})

test.each([
  ['no value', undefined],
  ['two values that Node.js joined', `${given}, ${given}`],
  ['another version', given.replace(/^00/, '01')],
  ['upper-case letters', given.toUpperCase()],
  ['a trace id of zeros', given.replace(traceId, '0'.repeat(32))],
  ['a span id of zeros', given.replace(parentSpanId, '0'.repeat(16))],
  ['an additional field', `${given}-00`],
  ['a line break', `${given}\n`],
  ['about a megabyte of text', given.repeat(20_000)],
  ['a list of values', [given]],
])('a traceparent header with %s starts a new trace that is not sampled', (_what, header) => {
  const trace = parseTraceparent(header)
  expect(trace).toMatchObject({ parentSpanId: '', isSampled: false })
  expect(trace.traceId).toMatch(/^[0-9a-f]{32}$/)
  expect(trace.traceId).not.toBe(traceId)
})

test('a thousand generated trace ids are all different', () => {
  const made = Array.from({ length: 1000 }, () => parseTraceparent(undefined))
  expect(new Set(made.map((trace) => trace.traceId)).size).toBe(1000)
  expect(new Set(made.map(({ spanId }) => spanId)).size).toBe(1000)
})

test('only a sampled trace context is sent to other controllers, and bytes of the wrong length are not decoded as a trace context', () => {
  const trace = parseTraceparent(given)
  expect(decodeTrace(encodeTrace(trace))).toEqual({ traceId, parentSpanId: trace.spanId })
  expect(encodeTrace(parseTraceparent(undefined))).toBe(NO_TRACE)
  expect(encodeTrace(undefined)).toBe(NO_TRACE)
  expect(decodeTrace(NO_TRACE)).toBeNull()
  expect(decodeTrace(new Uint8Array(5000))).toBeNull()
})
