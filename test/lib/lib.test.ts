import { describe, expect, test } from 'vitest'
import { BoundedQueue } from '../../src/lib/bounds/bounded-queue.ts'
import { canonicalJson, isSameJson } from '../../src/lib/text/canonical-json.ts'
import { isShortId, newShortId, seededRandom } from '../../src/lib/random.ts'
import { formatUuid, newUuidv7, parseUuid, uuidv7TimeMs } from '../../src/lib/text/uuid.ts'

describe('canonical JSON:', () => {
  test('equal values give equal bytes in any key order', () => {
    expect(canonicalJson({ b: 1, a: [{ d: null, c: 'x' }] })).toBe(
      canonicalJson({ a: [{ c: 'x', d: null }], b: 1 }),
    )
  })
  test('an undefined member is omitted, as in JSON', () => {
    expect(canonicalJson({ a: undefined, b: 'é\n' })).toBe('{"b":"é\\n"}')
  })
})

describe('a bounded queue', () => {
  test('refuses items when it is full, keeps their order, and accepts items again once it has space', () => {
    const queue = new BoundedQueue<number>(2)
    expect([queue.push(1), queue.push(2), queue.push(3)]).toEqual([true, true, false])
    expect(queue.shift()).toBe(1)
    expect(queue.push(4)).toBe(true)
    expect(queue.drain()).toEqual([2, 4])
    expect(queue.length).toBe(0)
  })
  test('keeps the order of its items over many insertions and removals', () => {
    const queue = new BoundedQueue<number>(5000)
    let next = 0
    for (let i = 0; i < 20_000; i += 1) {
      queue.push(i)
      if (i % 3 !== 0) {
        expect(queue.shift()).toBe(next)
        next += 1
      }
      if (queue.length >= 4999) {
        for (const item of queue.drain()) {
          expect(item).toBe(next)
          next += 1
        }
      }
    }
  })
})

describe('random values:', () => {
  test('equal seeds give equal sequences, and different seeds give different sequences', () => {
    const take = (seed: number): number[] => {
      const random = seededRandom(seed)
      return Array.from({ length: 50 }, () => random.integer(3, 9))
    }
    expect(take(7)).toEqual(take(7))
    expect(take(7)).not.toEqual(take(8))
    expect(Math.min(...take(7), ...take(8))).toBe(3)
    expect(Math.max(...take(7), ...take(8))).toBe(9)
  })
  test('short ids use only characters that are safe in a path and in a string of a filter', () => {
    const ids = new Set(Array.from({ length: 1000 }, newShortId))
    expect(ids.size).toBe(1000)
    for (const id of ids) expect(id).toMatch(/^[0-9A-Za-z_-]{12}$/)
    expect([...ids].filter((id) => !isShortId(id))).toEqual([])
  })
  test.each(['', 'short', '0123456789abc', '-0123456789a', '0123456789a.', '0123456789a\n'])(
    '%j is not a short id',
    (text) => {
      expect(isShortId(text)).toBe(false)
    },
  )
  test('an id of a record never begins with a hyphen, so that no command parses it as an option', () => {
    const first = new Set(Array.from({ length: 4096 }, () => newShortId().charAt(0)))
    expect(first.size).toBe(63)
    expect(first).not.toContain('-')
  })
})

describe('UUIDs:', () => {
  test('a UUIDv7 contains its time, and is unchanged after formatting and parsing (RFC 9562)', () => {
    const id = newUuidv7(1_700_000_000_123)
    expect(uuidv7TimeMs(id)).toBe(1_700_000_000_123)
    expect(parseUuid(formatUuid(id))).toEqual(id)
  })
  test('a UUID with another version has no time, and invalid text is not a UUID', () => {
    const v4 = parseUuid('9f6f8cde-4d3c-4e0f-9b1a-0123456789ab')
    expect(v4 === null ? 'unparsed' : uuidv7TimeMs(v4)).toBe(null)
    expect(parseUuid('9f6f8cde4d3c4e0f9b1a0123456789ab')).toBe(null)
    expect(parseUuid('9f6f8cde-4d3c-4e0f-9b1a-0123456789ag')).toBe(null)
  })
})

test('two JSON values are equal if and only if they differ at most in the order of members', () => {
  const value = { a: [1, { b: null, c: 'x' }], d: true, e: {} }
  expect(isSameJson(value, { e: {}, d: true, a: [1, { c: 'x', b: null }] })).toBe(true)
  const others = [
    { ...value, d: false },
    { ...value, a: [1] },
    { ...value, a: [1, { b: null }] },
    { ...value, a: [1, { b: null, c: 'x', f: 1 }] },
    { ...value, a: { 0: 1, 1: { b: null, c: 'x' } } },
    { ...value, e: [] },
    { ...value, e: null },
    { a: value.a, d: true },
    { ...value, f: null },
    [value],
    null,
    'x',
    undefined,
  ]
  for (const other of others) {
    expect(isSameJson(value, other), JSON.stringify(other)).toBe(false)
    expect(isSameJson(other, value), JSON.stringify(other)).toBe(false)
  }
  expect(isSameJson({ toString: 1 }, { valueOf: 1 })).toBe(false)
})
