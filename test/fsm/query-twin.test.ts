import { expect, test } from 'vitest'
import { Reader } from '../../src/fsm/reader.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import type { JsonObject } from '../../src/lib/canonical-json.ts'
import { seededRandom } from '../../src/lib/random.ts'
import type { Random } from '../../src/lib/random.ts'
import { formedState, identity, startMs } from './support/log.ts'

const clock = { nowMs: () => startMs, monotonicMs: () => 0 }

/** A filter and what it means, made together: the meaning knows neither the parser nor the indexes. */
interface Pair {
  readonly text: string
  readonly holds: (record: EntityRecord) => boolean
  /** `not` swallows what follows it, so it may only stand last in a chain. */
  readonly isOpen: boolean
}

const names = ['ann', 'bob', 'Bo', 'carl', 'an']
const attributes = ['a', 'b', 'c']

function pick<T>(random: Random, values: readonly T[]): T {
  const value = values[random.integer(0, values.length - 1)]
  if (value === undefined) throw new Error('nothing to pick')
  return value
}

const quote = (text: string): string => JSON.stringify(text)
const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
const setOf = (record: EntityRecord): readonly string[] => record['roleAttributes'] as string[]
const tagOf = (record: EntityRecord, key: string): unknown => (record['tags'] as JsonObject)[key]

function leaf(random: Random): Pair {
  const closed = (text: string, holds: Pair['holds']): Pair => ({ text, holds, isOpen: false })
  const word = pick(random, names)
  const other = pick(random, names)
  const attribute = pick(random, attributes)
  const number = random.integer(0, 4)
  const externalId = (record: EntityRecord): string | null => textOf(record['externalId'])
  const leaves: readonly (() => Pair)[] = [
    () => closed(`name = ${quote(word)}`, (record) => record['name'] === word),
    () => closed(`name!=${quote(word)}`, (record) => record['name'] !== word),
    () => closed(`externalId = ${quote(word)}`, (record) => externalId(record) === word),
    () => closed(`externalId != ${quote(word)}`, (record) => externalId(record) !== word),
    () => closed(`externalId = null`, (record) => externalId(record) === null),
    () =>
      closed(`externalId < ${quote(word)}`, (record) => {
        const own = externalId(record)
        return own !== null && own < word
      }),
    () =>
      closed(
        `externalId not contains ${quote(word)}`,
        (record) => externalId(record)?.includes(word) !== true,
      ),
    () =>
      closed(`name icontains ${quote(word)}`, (record) =>
        (textOf(record['name']) ?? '').toLowerCase().includes(word.toLowerCase()),
      ),
    () =>
      closed(`name in [${quote(word)},${quote(other)}]`, (record) =>
        [word, other].includes(textOf(record['name']) ?? ''),
      ),
    () =>
      closed(`externalId not in [ ${quote(word)} , ${quote(other)} ]`, (record) => {
        const own = externalId(record)
        return own === null || ![word, other].includes(own)
      }),
    () =>
      closed(`anyOf(roleAttributes) = "${attribute}"`, (record) =>
        setOf(record).includes(attribute),
      ),
    () =>
      closed(`anyOf(roleAttributes) != "${attribute}"`, (record) =>
        setOf(record).some((own) => own !== attribute),
      ),
    () =>
      closed(`allOf(roleAttributes) = "${attribute}"`, (record) =>
        setOf(record).every((own) => own === attribute),
      ),
    () =>
      closed(`anyOf(roleAttributes) in ["a", "c"]`, (record) =>
        setOf(record).some((own) => own === 'a' || own === 'c'),
      ),
    () => closed(`count(roleAttributes) >= ${number}`, (record) => setOf(record).length >= number),
    () => closed(`isEmpty(roleAttributes)`, (record) => setOf(record).length === 0),
    () =>
      closed(`tags.n between 1 and ${number}`, (record) => {
        const own = tagOf(record, 'n')
        return typeof own === 'number' && own >= 1 && own < number
      }),
    () => closed(`tags.n != ${number}`, (record) => tagOf(record, 'n') !== number),
    () => closed(`tags.n = null`, (record) => (tagOf(record, 'n') ?? null) === null),
    () => closed(`isAdmin`, (record) => record['isAdmin'] === true),
    () => closed(`isAdmin = false`, (record) => record['isAdmin'] === false),
    () => closed(`type = "Default"`, (record) => record['typeId'] === 'Default'),
    () => closed(`id < "i5"`, (record) => record.id < 'i5'),
    () => closed(`true`, () => true),
  ]
  return pick(random, leaves)()
}

function expression(random: Random, depth: number): Pair {
  const kind = depth === 0 ? 0 : random.integer(0, 5)
  if (kind <= 1) return leaf(random)
  if (kind === 2) {
    const inner = expression(random, depth - 1)
    return { text: `not ${inner.text}`, holds: (record) => !inner.holds(record), isOpen: true }
  }
  if (kind === 3) {
    const inner = expression(random, depth - 1)
    return { text: `( ${inner.text} )`, holds: inner.holds, isOpen: false }
  }
  const first = expression(random, depth - 1)
  const left =
    first.isOpen || /\b(?:and|or)\b/i.test(first.text)
      ? { ...first, text: `(${first.text})` }
      : first
  const right = expression(random, depth - 1)
  const isAnd = random.next() < 0.5
  return {
    text: `${left.text} ${isAnd ? 'and' : 'OR'} ${right.text}`,
    holds: (record) =>
      isAnd ? left.holds(record) && right.holds(record) : left.holds(record) || right.holds(record),
    isOpen: right.isOpen,
  }
}

test('a filter finds what it means, whatever index it leads through', () => {
  const random = seededRandom(29)
  const { state, log } = formedState()
  const reader = new Reader(state, clock)
  for (let i = 0; i < 60; i += 1) {
    const own = attributes.filter(() => random.next() < 0.4)
    const body = { ...identity(`${pick(random, names)}${i < names.length ? '' : i}`, own) }
    const tags = random.next() < 0.5 ? { n: random.integer(0, 4) } : { n: null, m: 'x' }
    const externalId = i < names.length ? (names[i] ?? null) : null
    log.create('identity', `i${i}`, { ...body, tags, externalId, isAdmin: random.next() < 0.3 })
  }
  for (const name of names) log.create('identity', `named-${name}`, identity(name))
  const all = [...state.table('identity').rows.values()].map((row) => row.record)
  let found = 0
  for (let round = 0; round < 3000; round += 1) {
    const { text, holds } = expression(random, 4)
    const meant = all
      .filter(holds)
      .map(({ id }) => id)
      .sort()
    const { records, totalCount } = reader.list('identity', { filter: text, limit: -1 })
    expect(
      records.map(({ id }) => id),
      text,
    ).toEqual(meant)
    expect(totalCount, text).toBe(meant.length)
    const sorted = reader.list('identity', {
      filter: text,
      sort: 'externalId desc, name',
      limit: 7,
      offset: 2,
    })
    const whole = reader.list('identity', {
      filter: text,
      sort: 'externalId desc, name',
      limit: -1,
    })
    expect(sorted.records, text).toEqual(whole.records.slice(2, 9))
    found += meant.length
  }
  expect(found).toBeGreaterThan(1000)
})

test('a filter made of random pieces is found to mean something or refused, never anything else', () => {
  const random = seededRandom(31)
  const { state, log } = formedState()
  const reader = new Reader(state, clock)
  log.create('identity', 'i1', identity('ann', ['a']))
  const pieces =
    '( ) [ ] , " \\ = != < <= ' +
    'and or not in between contains icontains anyOf( allOf( count( isEmpty( from where true false null ' +
    'sort by skip limit none asc desc name isAdmin roleAttributes tags.n "x" "a b" 1 -2.5 1e999 0 ' +
    'datetime(2024-01-01T00:00:00Z) datetime( é \u0000 %'
  const parts = pieces.split(' ')
  let refused = 0
  for (let round = 0; round < 20_000; round += 1) {
    let filter = ''
    for (let i = random.integer(1, 9); i > 0; i -= 1) {
      filter += pick(random, parts) + (random.next() < 0.8 ? ' ' : '')
    }
    try {
      reader.list('identity', { filter })
    } catch (error) {
      expect(error, filter).toMatchObject({ name: 'Problem' })
      expect((error as { code: string }).code, filter).toMatch(/^INVALID_(FILTER|SORT_IDENTIFIER)$/)
      refused += 1
    }
  }
  expect(refused).toBeLessThan(20_000)
})
