import { describe, expect, test } from 'vitest'
import type { KindName } from '../../src/entities/kind-records.ts'
import { defineEntity } from '../../src/entities/define-entity.ts'
import { nameField, idReferenceField, textListField } from '../../src/entities/fields.ts'
import { findEntity } from '../../src/entities/registry.ts'
import { digestLanes } from '../../src/fsm/records/digest.ts'
import { noQueryLinks } from '../../src/fsm/query/evaluate.ts'
import { RecordLister } from '../../src/fsm/query/list.ts'
import { parseQuery } from '../../src/fsm/query/parser.ts'
import { symbolNames } from '../../src/fsm/query/symbols.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { Table } from '../../src/fsm/records/table.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { ListQuery } from '../../src/ports/state-view.ts'
import { formedState, identity, policy, service, startMs } from './support/log.ts'

// Tests the query language rule by rule, in the order of its reference.

const clock = { nowMs: () => startMs, monotonicMs: () => 0 }

function problemOf(run: () => unknown): Problem {
  try {
    run()
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error('nothing was refused')
}

const accepted = (filter: string): void => {
  expect(() => parseQuery(filter)).not.toThrow()
}
const refused = (filter: string): void => {
  expect(problemOf(() => parseQuery(filter)).code).toBe('INVALID_FILTER')
}

describe('blanks at required, optional and forbidden positions of a filter', () => {
  test.each([
    ['name="x"'],
    ['name = "x"'],
    ['name\n=\r\n"x"'],
    ['a<1'],
    ['a<=-1'],
    ['a!=null'],
    ['a =true'],
    ['anyOf(a)="x"'],
    ['anyOf( a )="x"'],
    ['anyOf(a)contains "x"'],
    ['anyOf(a)not contains "x"'],
    ['anyOf(a) not  \t contains   "x"'],
    ['count(a)contains 5'],
    ['a not in ["x"]'],
    ['a not\nin ["x"]'],
    ['a in ["x","y"]'],
    ['a in   [ "x" , "y" ]'],
    ['a between 1 and 2'],
    ['a not   between 1   and\t2'],
    ['a between datetime( 2024-01-01T00:00:00Z ) and datetime(2024-01-02T00:00:00Z)'],
    ['isEmpty( a )'],
    ['count( from a where b )>1'],
    ['(a)'],
    ['( a )'],
    ['(a) and (b)'],
    [' \t\r\n a \n'],
    ['a sort by b,c desc ,d asc , e'],
    ['a  skip  1  limit  2'],
  ])('are accepted in %j', accepted)

  test.each([
    ['(a)and (b)'],
    ['(a) and(b)'],
    ['a and(b)'],
    ['a or(b)'],
    ['not(a)'],
    ['a not  in ["x"]'],
    ['a not\t\tin ["x"]'],
    ['a in["x"]'],
    ['anyOf(a)in ["x"]'],
    ['anyOf(a)not in ["x"]'],
    ['anyOf(a)between 1 and 2'],
    ['a contains"x"'],
    ['a icontains"x"'],
    ['anyOf (a) = "x"'],
    ['isEmpty (a)'],
    ['count (a) = 1'],
    ['a between 1 and2'],
    ['a between 1and 2'],
    ['a between1 and 2'],
    ['datetime (2024-01-01T00:00:00Z) = a'],
    ['a = datetime(2024-01-01 T00:00:00Z)'],
    ['a = - 5'],
    ['a ! = 5'],
    ['a < = 5'],
    ['a limit5'],
    ['a\u00a0and b'],
    ['a sortby b'],
    ['count(from a where(b)) = 1'],
    ['isEmpty(from a)'],
  ])('are refused in %j', refused)
})

describe('keywords and symbols in a filter', () => {
  test.each([
    ['TRUE'],
    ['a AND NOT b Or c'],
    ['a NOT IN ["x"]'],
    ['a Between 1 And 2'],
    ['a CONTAINS "x" and a Not iContains "y"'],
    ['ANYOF(a) = NULL'],
    ['AllOf(a) != True'],
    ['Count(FROM a WHERE b SORT BY c DESC SKIP 1 LIMIT NONE) = 1'],
    ['ISEMPTY(a)'],
    ['Sort By a Asc Skip 1 Limit None'],
    ['tags.and and tags.limit'],
    ['a.sort.by = "x"'],
    ['datetime = 5'],
    ['a_b.c_d-e = 1'],
    ['Aa.Bb'],
  ])('are accepted in %j', accepted)

  test.each([
    ['and'],
    ['limit = 5'],
    ['where'],
    ['anyOf(not) = 1'],
    ['count(from from where true) = 1'],
    ['true sort by desc'],
    ['a = Datetime(2024-01-01T00:00:00Z)'],
    ['a = DATETIME(2024-01-01T00:00:00Z)'],
    ['a1 = 1'],
    ['a.b1 = 1'],
    ['a-b = 1'],
    ['a.-b = 1'],
    ['a. = 1'],
    ['.a = 1'],
    ['a..b = 1'],
    ['_a = 1'],
    ['ä = 1'],
    ['5 = a'],
    ['"a" = "a"'],
    ['true = true'],
    ['not'],
    ['not not'],
    ['()'],
    ['a b'],
    ['a not b'],
    ['a = "x" = "y"'],
    ['a in ("x")'],
    ['a in "x"'],
    ['a in [true]'],
    ['a in [null]'],
    ['a in [[1]]'],
    ['a contains true'],
    ['a < "x" < "y"'],
    ['a between 1 or 2'],
    ['a; b'],
    ['a && b'],
    ['skip 1 sort by a'],
    ['limit none skip 1'],
    ['skip none'],
    ['limit 5 limit 5'],
  ])('are refused in %j', refused)
})

describe('literals in a filter', () => {
  const valueOf = (literal: string): unknown => {
    const { where } = parseQuery(`a = ${literal}`)
    return where?.type === 'compare' && where.value.type !== 'null' ? where.value.value : null
  }

  test.each([
    [String.raw`""`, ''],
    [String.raw`"\"\\\f\n\r\t"`, '"\\\f\n\r\t'],
    [String.raw`"it's [(and)] 😀 \\n"`, `it's [(and)] 😀 \\n`],
    ['"\u007f\u2028"', '\u007f\u2028'],
    ['0', 0],
    ['-0.5', -0.5],
    ['10e+2', 1000],
    ['1E-3', 0.001],
    ['123456789012', 123_456_789_012],
    ['datetime(2024-01-02T03:04:05Z)', Date.UTC(2024, 0, 2, 3, 4, 5)],
    ['datetime(2024-01-02t03:04:05z)', Date.UTC(2024, 0, 2, 3, 4, 5)],
    ['datetime(2024-01-02T03:04:05.6-07:30)', Date.UTC(2024, 0, 2, 10, 34, 5, 600)],
    ['datetime(2024-01-02T03:04:05.000000001Z)', Date.UTC(2024, 0, 2, 3, 4, 5) + 0.5],
    ['datetime(2024-01-02T03:04:05.9990000+00:00)', Date.UTC(2024, 0, 2, 3, 4, 5, 999)],
    ['datetime(2000-02-29T23:59:59Z)', Date.UTC(2000, 1, 29, 23, 59, 59)],
  ])('are parsed: %s is %j', (literal, value) => {
    expect(valueOf(literal)).toBe(value)
  })

  test.each([
    [`'x'`],
    ['"x'],
    ['"\\"'],
    [String.raw`"\b"`],
    [String.raw`"\u0041"`],
    [String.raw`"\/"`],
    ['"\t"'],
    ['"\u0000"'],
    ['"\u001f"'],
    ['00'],
    ['01'],
    ['+1'],
    ['.5'],
    ['1.'],
    ['1e'],
    ['0x10'],
    ['1_000'],
    ['NaN'],
    ['Infinity'],
    ['datetime()'],
    ['datetime(2024-01-02)'],
    ['datetime(2024-01-02T03:04:05)'],
    ['datetime(2024-01-02T03:04Z)'],
    ['datetime(2024-01-02 03:04:05Z)'],
    ['datetime(2024-01-02T03:04:05.Z)'],
    ['datetime(2024-01-02T24:00:00Z)'],
    ['datetime(2024-01-02T03:60:00Z)'],
    ['datetime(2024-01-02T03:04:60Z)'],
    ['datetime(2024-01-02T03:04:05+24:00)'],
    ['datetime(2024-01-02T03:04:05+0100)'],
    ['datetime(2023-02-29T00:00:00Z)'],
    ['datetime(2024-04-31T00:00:00Z)'],
    ['datetime(2024-00-01T00:00:00Z)'],
    ['datetime(24-01-01T00:00:00Z)'],
    ['datetime("2024-01-02T03:04:05Z")'],
  ])('are refused if they are malformed: %j', (literal) => {
    refused(`a = ${literal}`)
  })

  test.each([
    ['a between "a" and "b"'],
    ['a between 1 and datetime(2024-01-01T00:00:00Z)'],
    ['a between null and 1'],
    ['a in ["x", 1]'],
    ['a in [1, datetime(2024-01-01T00:00:00Z)]'],
    ['a in []'],
    ['a < null'],
    ['a >= true'],
    ['a icontains 5'],
  ])('must have the type that the operator requires: %j is refused', refused)
})

test.each([
  ['name = x', 'x', 1, 7, 'name = x'],
  ['name == "x"', '=', 1, 6, 'name == "x"'],
  ['name =', '<EOF>', 1, 6, 'name ='],
  ['name = "x"\n  and\n%', '%', 3, 0, '%'],
  ['name = "😀é" und b', 'und', 1, 12, 'name = "😀é" und b'],
  ['name = 😀', '😀', 1, 7, 'name = 😀'],
  ['not(name)', '(', 1, 3, 'not(name)'],
])(
  'the error for the filter %j contains the symbol, the line, the column and the text',
  (filter, symbol, line, column, text) => {
    expect(problemOf(() => parseQuery(filter)).detail).toBe(
      `Unexpected symbol: "${symbol}" at line: ${line} column: ${column}. line: ${text}`,
    )
  },
)

describe('a list query with a filter', () => {
  const { state, log } = formedState()
  const reader = new StateReader(state, clock)
  const list = (entity: KindName, query: ListQuery): string[] =>
    reader.list(entity, query).records.map(({ id }) => id)
  log.create('config', 'c1', { name: 'one', configTypeId: 'NH5p4FpGR', data: {} })
  log.create('config', 'c2', { name: 'two', configTypeId: 'host.v2', data: { terminators: [] } })
  log.create('service', 's1', { ...service('\u{1F600}'), configs: ['c1', 'c2'] })
  log.create('service', 's2', { ...service('\uFF5E'), configs: ['c2'] })
  log.create('service', 's3', { ...service('Ärger 12'), tags: { n: 1.5, t: '2024', at: startMs } })
  log.create('identity', 'i1', identity('ann', ['a']))
  log.create('identity', 'i2', { ...identity('Zoë'), externalId: 'x' })
  log.create('servicePolicy', 'p1', policy('p', ['#all'], ['@s1', '@s2']))

  test.each([
    ['name > "\uFF00"', ['s1', 's2']],
    ['name > "\uFF5E"', ['s1']],
    ['name < "\u{1F600}"', ['s2', 's3']],
    ['name >= "\uFF5E" and name < "\u{1F600}"', ['s2']],
    ['name icontains "äRGER"', ['s3']],
    ['name contains "ärger"', []],
    ['name contains 12', ['s3']],
    ['tags.n contains 1.5', ['s3']],
    ['tags.n contains "."', ['s3']],
    ['tags.t > datetime(2020-01-01T00:00:00Z)', []],
    ['tags.at > datetime(2020-01-01T00:00:00Z)', []],
    ['tags.at != datetime(2020-01-01T00:00:00Z)', ['s1', 's2', 's3']],
    ['tags.n not between 1 and 2', ['s1', 's2']],
    ['tags.n between 1.5 and 2', ['s3']],
    ['tags.n between 1 and 1.5', []],
    ['tags.n < 1e999', ['s3']],
    [
      `createdAt < datetime(${new Date(startMs).toISOString().replace('Z', '1Z')})`,
      ['s1', 's2', 's3'],
    ],
    [`createdAt = datetime(${new Date(startMs).toISOString().replace('Z', '1Z')})`, []],
    ['anyOf(configs) = "c1"', ['s1']],
    ['allOf(configs) in ["c2"]', ['s2', 's3']],
    ['isEmpty(from configs where name = "two")', ['s3']],
    ['count(from configs where name >= "one" sort by name skip 1 limit none) = 1', ['s1']],
    ['count(from configs where true limit 1) = 1', ['s1', 's2']],
  ])('selects services where %s', (filter, expected) => {
    expect(list('service', { filter })).toEqual(expected)
  })

  test('sorts strings by their UTF-8 bytes', () => {
    expect(list('service', { sort: 'name' })).toEqual(['s3', 's2', 's1'])
    expect(list('service', { sort: 'name desc', filter: 'name != ""' })).toEqual(['s1', 's2', 's3'])
  })

  test.each([
    ['service', { filter: `'name' = "x"` }, 'INVALID_FILTER', `unknown symbol 'name'`],
    [
      'service',
      { filter: 'tags.x' + '.y'.repeat(3) + ' sort by tags.x' },
      'INVALID_SORT_IDENTIFIER',
      'can not be sorted by',
    ],
    [
      'service',
      { filter: 'true sort by configs' },
      'INVALID_SORT_IDENTIFIER',
      'can not be sorted by',
    ],
    [
      'service',
      { filter: 'isEmpty(from configs where true sort by x)' },
      'INVALID_FILTER',
      'unknown symbol x',
    ],
    ['service', { filter: 'isEmpty(from configs where x)' }, 'INVALID_FILTER', 'unknown symbol x'],
    [
      'service',
      { filter: 'isEmpty(from configs where name)' },
      'INVALID_FILTER',
      'no boolean symbol',
    ],
    ['service', { filter: 'isEmpty(name)' }, 'INVALID_FILTER', 'is no set'],
    ['service', { filter: 'anyOf(configs) > 5' }, 'INVALID_FILTER', 'not supported'],
    ['service', { filter: 'service.name = "x"' }, 'INVALID_FILTER', 'unknown symbol service.name'],
    ['service', { filter: '\u00a0' }, 'INVALID_FILTER', 'Unexpected symbol'],
    ['service', { sort: '\u00a0' }, 'INVALID_SORT_IDENTIFIER', ''],
  ])('for the kind %s is refused with the parameters %j', (entity, query, code, detail) => {
    const problem = problemOf(() => list(findEntity(entity).name, query))
    expect(problem.code).toBe(code)
    expect(problem.detail).toContain(detail)
  })

  test('uses the role filter only for kinds whose lists support role filters', () => {
    expect(list('config', { roleFilter: ['#none'] })).toEqual(['c1', 'c2'])
    expect(list('service', { roleFilter: ['#none'] })).toEqual([])
  })
})

describe('a filter symbol for a field of a referenced record', () => {
  const place = defineEntity({
    name: 'place',
    plural: 'places',
    operations: {},
    fields: { name: nameField(), floors: textListField() },
    symbols: ['name', 'floors'],
  })
  const desk = defineEntity({
    name: 'desk',
    plural: 'desks',
    operations: {},
    fields: { placeId: idReferenceField('configType', 'refuse') },
    symbols: [
      { name: 'place', field: 'placeId' },
      { name: 'place.name', through: { field: 'placeId', of: 'configType', symbol: 'name' } },
      {
        name: 'place.isSystem',
        through: { field: 'placeId', of: 'configType', symbol: 'isSystem' },
      },
    ],
  })
  const places = new Table(place)
  const desks = new Table(desk)
  const put = (table: Table<EntityRecord, string>, values: { readonly id: string }): void => {
    const record = table.shape({ createdAt: 1, updatedAt: 1, revision: 1, ...values }, 1)
    table.change(record.id, { record, lanes: digestLanes('', '') })
  }
  for (const [id, name] of [
    ['a', 'attic'],
    ['b', 'barn'],
    ['c', 'cellar'],
  ] as const) {
    put(places, { id, name } as { id: string })
  }
  for (const [id, placeId] of [
    ['d1', 'b'],
    ['d2', 'a'],
    ['d3', 'gone'],
    ['d4', ''],
    ['d5', 'b'],
  ]) {
    put(desks, { id, placeId } as { id: string })
  }
  const lister = new RecordLister({
    ...noQueryLinks,
    table: (kind) => (kind === 'configType' ? places : null),
  })
  const list = (query: ListQuery): string[] =>
    lister.list(desks, query, null).records.map(({ id }) => id)

  test.each([
    ['place = "b"', ['d1', 'd5']],
    ['place.name = "barn"', ['d1', 'd5']],
    ['place.name in ["barn", "attic"]', ['d1', 'd2', 'd5']],
    ['place.name = "nowhere"', []],
    ['place.name != "barn"', ['d2', 'd3', 'd4']],
    ['place.name = null', ['d3', 'd4']],
    ['place.name >= "b" and place.name < "c"', ['d1', 'd5']],
    ['place.name > "b" or place = "a"', ['d1', 'd2', 'd5']],
    ['place.name icontains "T" and not place.isSystem', ['d2']],
    ['place.isSystem = false', ['d1', 'd2', 'd3', 'd4', 'd5']],
  ])('selects records of the test kind desk where %s', (filter, expected) => {
    expect(list({ filter })).toEqual(expected)
  })

  test.each([
    ['place.floors = "x"', 'INVALID_FILTER'],
    ['place.name = 5', 'INVALID_FILTER'],
    ['place.name', 'INVALID_FILTER'],
    ['anyOf(place.name) = "x"', 'INVALID_FILTER'],
    ['true sort by place.name', 'INVALID_SORT_IDENTIFIER'],
  ])('is refused if its use is invalid: %s', (filter, code) => {
    expect(problemOf(() => list({ filter })).code).toBe(code)
  })

  test('cannot be defined if its reference field leads to a kind other than the one in its definition', () => {
    const symbols = [
      { name: 'place.name', through: { field: 'placeId', of: 'config', symbol: 'name' } },
    ] as const
    const fields = { placeId: idReferenceField('configType', 'refuse') }
    expect(() =>
      defineEntity({ name: 'x', plural: 'xs', operations: {}, fields, symbols }),
    ).toThrow('leads through a reference to config')
  })
})

test.each([
  [
    'identity',
    'name roleAttributes roleAttributeEndsAt externalId type authPolicyId isAdmin isDefaultAdmin disabled hasApiSession hasEdgeRouterConnection ' +
      'edgeRouters isLocked lastSeenAt',
  ],
  [
    'service',
    'name terminatorStrategy roleAttributes configs isFabricOnly edgeRouters terminators',
  ],
  ['config', 'name type'],
  ['configType', 'name schema target'],
  [
    'servicePolicy',
    'name type semantic identityRoles serviceRoles postureCheckRoles expiresAt isEnded identities services',
  ],
  [
    'authPolicy',
    'name primary.cert.allowed primary.cert.allowExpiredCerts primary.updb.allowed primary.updb.minPasswordLength ' +
      'primary.updb.requireSpecialChar primary.updb.requireNumberChar primary.updb.requireMixedCase ' +
      'primary.updb.maxAttempts primary.extJwt.allowed secondary.requireTotp secondary.requireExtJwtSigner',
  ],
  [
    'authenticator',
    'method identity certFingerprint certPem publicKeyPrint isIssuedByNetwork isExtendRequested isKeyRollRequested ' +
      'extendRequestedAt lastAuthResolvedToRoot lastExtendRolledKeys updbUsername',
  ],
  [
    'apiSession',
    'identity authenticator lastActivityAt ipAddress mfaComplete mfaRequired improperClientCertChain',
  ],
  ['identityType', 'name'],
])('the kind %s can be filtered by exactly these symbols: %s', (entity, symbols) => {
  const common = ['id', 'createdAt', 'updatedAt', 'tags', 'isSystem']
  const names = symbolNames(findEntity(entity))
  expect(names.sort()).toEqual([...common, ...symbols.split(' ')].sort())
})

describe('the cost limit of a list', () => {
  test('counts filter terms that are evaluated on each record, but not terms for which an index is used', () => {
    const { state } = formedState()
    const reader = new StateReader(state, clock)
    const values = { createdAt: 1, updatedAt: 1, revision: 1 }
    for (let i = 0; i < 30_000; i += 1) {
      state.put('identity', { ...values, id: `i${i}`, name: `n${i}` })
      if (i % 1000 === 0) state.takeDirty()
    }
    const row = (text: string): string => Array.from({ length: 700 }, () => text).join(' or ')
    const dear = problemOf(() => reader.list('identity', { filter: row('tags.x = "y"') }))
    expect(dear).toMatchObject({ code: 'INVALID_FILTER' })
    expect(dear.detail).toContain('costs too much')
    expect(reader.list('identity', { filter: row('name = "n7"') }).totalCount).toBe(1)
    expect(reader.list('identity', { filter: 'name icontains "N7"' }).totalCount).toBe(3444 - 2333)
  })

  test('permits at most 16 subqueries in a filter', () => {
    const one = 'isEmpty(from a where true)'
    const rowOf = (count: number): string => Array.from({ length: count }, () => one).join(' and ')
    accepted(rowOf(16))
    refused(rowOf(17))
  })
})
