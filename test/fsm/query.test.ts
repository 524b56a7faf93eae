import { describe, expect, test } from 'vitest'
import { findEntity } from '../../src/entities/registry.ts'
import type { KindName } from '../../src/entities/kind-records.ts'
import type { Expression } from '../../src/fsm/query/ast.ts'
import { parseQuery } from '../../src/fsm/query/parser.ts'
import { configType } from '../../src/entities/kinds/config-type.ts'
import { digestLanes } from '../../src/fsm/records/digest.ts'
import { noQueryLinks } from '../../src/fsm/query/evaluate.ts'
import { RecordLister, pageLimits } from '../../src/fsm/query/list.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { Table } from '../../src/fsm/records/table.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { ListQuery } from '../../src/ports/state-view.ts'
import { formedState, identity, policy, service, startMs } from './support/log.ts'

const clock = { nowMs: () => startMs, monotonicMs: () => 0 }

/** Form of an expression with every grouping written out. */
function grouped(expression: Expression | null): string {
  switch (expression?.type) {
    case 'and':
    case 'or':
      return `(${grouped(expression.left)} ${expression.type} ${grouped(expression.right)})`
    case 'not':
      return `(not ${grouped(expression.operand)})`
    case 'symbol':
      return expression.name
    default:
      return expression?.type ?? 'null'
  }
}

function problemOf(run: () => unknown): Problem {
  try {
    run()
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('the parser of filters', () => {
  test.each([
    ['a and b or c', '(a and (b or c))'],
    ['a or b and c', '(a or (b and c))'],
    ['a and not b or c', '(a and (not (b or c)))'],
    ['not a and b', '(not (a and b))'],
    ['(not a) and b', '((not a) and b)'],
    ['(a and b) or c', '((a and b) or c)'],
    ['( ( a ) )', 'a'],
    ['a AND b Or c', '(a and (b or c))'],
    ['NOT a', '(not a)'],
    ['a\tand\r\nb', '(a and b)'],
    ['tags.and', 'tags.and'],
    ['tags.some-key', 'tags.some-key'],
    ['nota', 'nota'],
  ])('parses %j as %s', (text, expected) => {
    expect(grouped(parseQuery(text).where)).toBe(expected)
  })

  test.each([
    ['limit 5', { where: null, limit: 5 }],
    ['limit none', { limit: 'none' }],
    ['LIMIT NONE', { limit: 'none' }],
    ['skip 3 limit 5', { skip: 3, limit: 5 }],
    ['sort by name', { sort: [{ name: 'name', isDescending: false }] }],
    ['  sort by name desc , id asc skip 1 limit 2  ', { skip: 1, limit: 2 }],
    ['true sort by name DESC limit 2', { sort: [{ name: 'name', isDescending: true }], limit: 2 }],
    ['a limit 2', { limit: 2 }],
  ])('accepts the paging options in %j', (text, expected) => {
    expect(parseQuery(text)).toMatchObject(expected)
  })

  test('accepts more than five sort fields, and uses only the first five', () => {
    expect(
      parseQuery('sort by a,b, c ,d,e,f')
        .sort?.map(({ name }) => name)
        .join(''),
    ).toBe('abcde')
  })

  test('decodes escape sequences in strings', () => {
    const where = parseQuery(String.raw`name = "a\"b\\c\n\t\r\f é"`).where
    expect(where).toMatchObject({ value: { value: 'a"b\\c\n\t\r\f é' } })
  })

  test.each([
    ['0', 0],
    ['-1', -1],
    ['12.5', 12.5],
    ['1e3', 1000],
    ['1.5E-2', 0.015],
  ])('accepts %s as a number', (text, value) => {
    expect(parseQuery(`a = ${text}`).where).toMatchObject({ value: { type: 'number', value } })
  })

  test.each([
    ['datetime(2024-01-02T03:04:05Z)', '2024-01-02T03:04:05.000Z'],
    ['datetime( 2024-01-02T03:04:05.678+01:00 )', '2024-01-02T02:04:05.678Z'],
    ['datetime(2024-02-29T00:00:00.1230000Z)', '2024-02-29T00:00:00.123Z'],
  ])('accepts %s as a time', (text, iso) => {
    expect(parseQuery(`a > ${text}`).where).toMatchObject({ value: { value: Date.parse(iso) } })
  })

  const broken: readonly (readonly [string, string])[] = [
    ['', '<EOF>'],
    ['   ', '<EOF>'],
    ['name = ', '<EOF>'],
    ['name = "x', '<EOF>'],
    ['name = "a\nb"', '\n'],
    ['name = "a\\q"', '\\'],
    [`name = 'x'`, `'x'`],
    [`name = 'x y'`, `'`],
    ['name == "x"', '='],
    ['name = x', 'x'],
    ['name < true', 'true'],
    ['name <= null', 'null'],
    ['name = "x" and', '<EOF>'],
    ['name = "x" name = "y"', 'name'],
    ['name = "x"and true', 'and'],
    ['and', 'and'],
    ['not(true)', '('],
    ['name not  in ["x"]', 'in'],
    ['name in["x"]', '['],
    ['name in []', ']'],
    ['name in ["x", 1]', '1'],
    ['name in ["x",]', ']'],
    ['name contains"x"', '"'],
    ['name icontains 5', '5'],
    ['name between "a" and "b"', '"'],
    ['x between 1 and datetime(2024-01-02T03:04:05Z)', 'datetime'],
    ['x between 1 and', '<EOF>'],
    ['anyOf (roleAttributes) = "x"', ' '],
    ['anyOf(roleAttributes)', '<EOF>'],
    ['count(roleAttributes)', '<EOF>'],
    ['isEmpty(roleAttributes', '<EOF>'],
    ['isEmpty()', ')'],
    ['(true', '<EOF>'],
    ['true)', ')'],
    ['name5 = 1', '5'],
    ['name = 01', '1'],
    ['name = 1.', '.'],
    ['name = .5', '.'],
    ['name = datetime(2024-13-01T00:00:00Z)', 'datetime'],
    ['name = datetime(2024-02-30T00:00:00Z)', 'datetime'],
    ['name = Datetime(2024-01-01T00:00:00Z)', 'Datetime'],
    ['name = datetime("2024-01-01T00:00:00Z")', 'datetime'],
    ['limit', '<EOF>'],
    ['limit x', 'x'],
    ['limit 1.5', '1'],
    ['limit 5 skip 3', 'skip'],
    ['limit 5 sort by name', 'sort'],
    ['sort name', 'name'],
    ['sort by', '<EOF>'],
    ['sort by name up', 'up'],
    ['sort by name,', '<EOF>'],
    ['true limit5', '5'],
    ['a.5 = 1', '.'],
    ['a..b', '.'],
    ['_a', '_'],
    ['\0', '\0'],
  ]
  test.each(broken)('refuses %j at the symbol %j', (text, symbol) => {
    const problem = problemOf(() => parseQuery(text))
    expect(problem.code).toBe('INVALID_FILTER')
    expect(problem.detail).toContain(`Unexpected symbol: "${symbol}" at line: `)
  })

  test('reports line, column and text of a fault', () => {
    expect(problemOf(() => parseQuery('name = "x"\n and %')).detail).toBe(
      'Unexpected symbol: "%" at line: 2 column: 5. line:  and %',
    )
  })

  test.each([
    ['the length of a filter', `name = "${'x'.repeat(20_000)}"`],
    ['the nesting of parentheses', `${'('.repeat(65)}true${')'.repeat(65)}`],
    ['the nesting of not', `${'not '.repeat(65)}true`],
    ['the nesting of subqueries', `${'count(from a where '.repeat(65)}true`],
    ['the number of terms', `true${' and true'.repeat(1000)}`],
    ['the length of a list', `a in [${'1,'.repeat(2000)}1]`],
    ['the number of sort fields', `sort by a${',a'.repeat(1100)}`],
  ])('limits %s, and refuses a filter above the limit', (_title, text) => {
    expect(problemOf(() => parseQuery(text)).code).toBe('INVALID_FILTER')
  })

  test('accepts the maximum number of terms without exhausting the stack', () => {
    expect(grouped(parseQuery(`a${' and a'.repeat(999)}`).where)).toHaveLength(1000 + 999 * 7)
  })
})

function fixture(): (entity: KindName, query: ListQuery) => string[] {
  const { state, log } = formedState()
  log.create('service', 's1', {
    ...service('alpha', ['a', 'b']),
    tags: { where: 'here', on: true, n: 3 },
  })
  log.timeMs = startMs + 1000
  log.create('service', 's2', { ...service('Beta', ['b']), maxIdleTimeMillis: 20 })
  log.timeMs = startMs + 2000
  log.create('service', 's3', {
    ...service('gamma', []),
    maxIdleTimeMillis: 100,
    tags: { where: 'there' },
  })
  log.create('identity', 'i1', { ...identity('ann', ['x']), externalId: 'ext' })
  log.create('identity', 'i2', identity('bob'))
  log.create('servicePolicy', 'p1', policy('p1', ['@i1'], ['#b']))
  log.create('servicePolicy', 'p2', policy('p2', ['#all'], ['@s3'], { type: 'Bind' }))
  const reader = new StateReader(state, clock)
  return (entity, query) => reader.list(entity, query).records.map(({ id }) => id)
}

describe('a filter', () => {
  const list = fixture()
  const at = (ms: number): string => `datetime(${new Date(startMs + ms).toISOString()})`
  test.each([
    ['name = "alpha"', ['s1']],
    ['name != "alpha"', ['s2', 's3']],
    ['name = "beta"', []],
    ['name < "b"', ['s1', 's2']],
    ['name >= "alpha"', ['s1', 's3']],
    ['name in ["alpha", "gamma", "alpha"]', ['s1', 's3']],
    ['name not in ["alpha"]', ['s2', 's3']],
    ['name contains "et"', ['s2']],
    ['name contains ""', ['s1', 's2', 's3']],
    ['name not contains "a"', []],
    ['name icontains "BETA"', ['s2']],
    ['name not icontains "a"', []],
    ['id in ["s3", "s1", "s9"]', ['s1', 's3']],
    ['id = "s2"', ['s2']],
    ['anyOf(roleAttributes) = "b"', ['s1', 's2']],
    ['anyOf(roleAttributes) != "b"', ['s1']],
    ['allOf(roleAttributes) = "b"', ['s2', 's3']],
    ['anyOf(roleAttributes) in ["a", "zz"]', ['s1']],
    ['anyOf( roleAttributes ) contains "b"', ['s1', 's2']],
    ['not anyOf(roleAttributes) = "b"', ['s3']],
    ['count(roleAttributes) > 1', ['s1']],
    ['count(roleAttributes) between 0 and 2', ['s2', 's3']],
    ['isEmpty(roleAttributes)', ['s3']],
    ['not isEmpty( roleAttributes )', ['s1', 's2']],
    ['isEmpty(configs)', ['s1', 's2', 's3']],
    ['tags.where = "here"', ['s1']],
    ['tags.where != "here"', ['s2', 's3']],
    ['tags.where = null', ['s2']],
    ['tags.where != null', ['s1', 's3']],
    ['tags.on = true', ['s1']],
    ['tags.on', ['s1']],
    ['tags.n > 2', ['s1']],
    ['tags.n contains 3', ['s1']],
    ['tags.where > 2', []],
    ['tags.constructor != null', []],
    [`createdAt = ${at(1000)}`, ['s2']],
    [`createdAt between ${at(0)} and ${at(2000)}`, ['s1', 's2']],
    [`createdAt not between ${at(0)} and ${at(2000)}`, ['s3']],
    ['isSystem', []],
    ['isSystem = false', ['s1', 's2', 's3']],
    ['isFabricOnly != true', ['s1', 's2', 's3']],
    ['true', ['s1', 's2', 's3']],
    ['false', []],
    ['name = "alpha" or name = "gamma"', ['s1', 's3']],
    ['anyOf(roleAttributes) = "b" and name = "Beta"', ['s2']],
    ['anyOf(roleAttributes) = "b" or name contains "amm"', ['s1', 's2', 's3']],
    ['name = "nothing" or anyOf(roleAttributes) = "a"', ['s1']],
  ])('for services selects those where %s', (filter, expected) => {
    expect(list('service', { filter })).toEqual(expected)
  })

  test.each([
    ['externalId = null', ['admin', 'i2']],
    ['externalId != null', ['i1']],
    ['externalId = "ext"', ['i1']],
    ['externalId != "other"', ['admin', 'i1', 'i2']],
    ['externalId > "a"', ['i1']],
    ['not externalId > "a"', ['admin', 'i2']],
    ['externalId not contains "e"', ['admin', 'i2']],
    ['isAdmin', ['admin']],
    ['isAdmin = false and type = "Default"', ['i1', 'i2']],
    ['authPolicyId = "default"', ['admin', 'i1', 'i2']],
  ])('for identities selects those where %s', (filter, expected) => {
    expect(list('identity', { filter })).toEqual(expected)
  })

  test.each([
    ['anyOf(services) = "s3"', ['p2']],
    ['anyOf(identities) = "i1"', ['p1', 'p2']],
    ['count(identities) = 3', ['p2']],
    ['anyOf(serviceRoles) = "#b"', ['p1']],
    ['anyOf(identityRoles) = "#all"', ['p2']],
    ['type = "Bind"', ['p2']],
    ['not isEmpty(from services where name = "gamma")', ['p2']],
    ['count(from services where true limit 1) = 1', ['p1', 'p2']],
    ['count(from identities where isAdmin or name = "bob") = 2', ['p2']],
  ])('for service policies selects those where %s', (filter, expected) => {
    expect(list('servicePolicy', { filter })).toEqual(expected)
  })

  test.each([
    ['authPolicy', 'primary.cert.allowed and primary.updb.minPasswordLength = 8', ['default']],
    ['authPolicy', 'secondary.requireExtJwtSigner = null', ['default']],
    ['authenticator', 'identity = "admin" and updbUsername = "Default Admin"', ['admin-updb']],
  ])('for the kind %s selects records where %s', (entity, filter, expected) => {
    expect(list(findEntity(entity).name, { filter })).toEqual(expected)
  })

  test.each([
    ['nope = "x"', 'unknown symbol nope'],
    ['Name = "x"', 'unknown symbol Name'],
    ['constructor = "x"', 'unknown symbol constructor'],
    ['roleAttributes.x = "x"', 'unknown symbol roleAttributes.x'],
    ['permissions = "Dial"', 'unknown symbol permissions'],
    ['roleAttributes = "x"', 'is a set'],
    ['anyOf(name) = "x"', 'is no set'],
    ['name', 'no boolean symbol'],
    ['name = 5', 'not supported'],
    ['name = true', 'not supported'],
    ['name in [5]', 'not supported'],
    ['createdAt = "2024"', 'not supported'],
    ['isSystem = "true"', 'not supported'],
    ['isSystem < 5', 'not supported'],
    ['isSystem contains "t"', 'not supported'],
    ['createdAt contains "2"', 'not supported'],
    ['name between 1 and 2', 'not supported'],
    ['count(roleAttributes) = "1"', 'not supported'],
    ['anyOf(roleAttributes) = null', 'not supported'],
    ['isEmpty(from roleAttributes where true)', 'leads to no records'],
    ['true sort by nope', 'unknown symbol nope'],
  ])('is refused if its text is %j (reason: %s)', (filter, reason) => {
    const problem = problemOf(() => list('service', { filter }))
    expect(problem.code).toBe('INVALID_FILTER')
    expect(problem.detail).toContain(reason)
  })

  test.each([
    ['nope'],
    ['roleAttributes'],
    ['tags.where'],
    ['name upward'],
    ['name,'],
    ['%'],
    ['tags'],
  ])('with the sort parameter %j is refused', (sort) => {
    expect(problemOf(() => list('service', { sort })).code).toBe('INVALID_SORT_IDENTIFIER')
  })
})

describe('an unpaged list', () => {
  // Has no log, because a log with this number of entries would be replayed after each test.
  const table = new Table(configType)
  const noLanes = digestLanes('', '')
  for (let i = 0; i <= pageLimits.wholeListRowsMax; i += 1) {
    const row = { id: `t${String(i).padStart(6, '0')}`, name: `type ${i}`, schema: {} }
    const record = { ...row, createdAt: i % 7, updatedAt: 0, revision: 0 }
    table.change(record.id, { record, lanes: noLanes })
  }
  const lister = new RecordLister(noQueryLinks)
  const listed = (query: ListQuery) => lister.list(table, query, null)
  const id = (i: number): string => `id < "t${String(i).padStart(6, '0')}"`
  const { wholeListRowsMax } = pageLimits

  test.each<[string, ListQuery]>([
    ['without a filter and an order', { limit: -1 }],
    ['sorted by name', { filter: 'sort by name limit none' }],
    ['sorted by createdAt', { filter: 'sort by createdAt limit none' }],
    ['with a filter', { filter: 'name contains "type" limit none' }],
    [
      'with a filter, sorted by createdAt',
      { filter: 'name contains "type" sort by createdAt limit none' },
    ],
  ])('is refused if it has more rows than allowed: %s', (_, query) => {
    const problem = problemOf(() => listed(query))
    expect(problem.code).toBe('COULD_NOT_VALIDATE')
    expect(problem.fault?.field).toBe('limit')
  })

  test('has a maximum length, while a page of the same list may begin at any offset', () => {
    const whole = listed({ filter: `${id(wholeListRowsMax)} limit none` })
    expect(whole.records).toHaveLength(wholeListRowsMax)
    const page = { limit: 500, offset: wholeListRowsMax, sort: 'createdAt' }
    expect(listed(page).totalCount).toBeGreaterThan(wholeListRowsMax)
  })
})

describe('paging, sorting and role filters of a list', () => {
  const { state, log } = formedState()
  const reader = new StateReader(state, clock)
  for (let i = 0; i < 1200; i += 1) {
    const id = `s${String(i).padStart(4, '0')}`
    const body = { ...service(`name ${1200 - i}`, [i % 2 === 0 ? 'even' : 'odd', `r${i % 10}`]) }
    log.create('service', id, { ...body, maxIdleTimeMillis: i % 7 })
  }
  const page = (query: ListQuery): JsonObject => {
    const { records, ...rest } = reader.list('service', query)
    return { ...rest, length: records.length, first: records[0]?.id ?? null }
  }
  const none = -1
  test.each<[ListQuery, JsonObject]>([
    [{}, { limit: 10, offset: 0, totalCount: 1200, length: 10, first: 's0000' }],
    [{ limit: 0 }, { limit: 10, length: 10 }],
    [{ limit: -2 }, { limit: 10 }],
    [{ limit: 501 }, { limit: 500, length: 500 }],
    [{ limit: -1 }, { limit: none, length: 1200 }],
    [{ filter: 'limit none' }, { limit: none, length: 1200 }],
    [
      { filter: 'limit none', limit: 3 },
      { limit: none, length: 1200 },
    ],
    [
      { filter: 'limit 3', limit: 5, offset: 2 },
      { limit: 3, offset: 2, first: 's0002' },
    ],
    [
      { filter: 'skip 7', limit: 5, offset: 2 },
      { limit: 5, offset: 7, first: 's0007' },
    ],
    [{ offset: -5 }, { offset: 0 }],
    [{ offset: 1195 }, { length: 5, first: 's1195' }],
    [{ offset: 200_000 }, { offset: 100_000, length: 0, totalCount: 1200 }],
    [
      { filter: 'anyOf(roleAttributes) = "odd"', offset: 1 },
      { totalCount: 600, first: 's0003' },
    ],
    [
      { filter: 'anyOf(roleAttributes) = "odd" and name contains "9"' },
      { length: 10, first: 's0001' },
    ],
    [{ sort: 'name' }, { first: 's1199' }],
    [{ sort: 'name desc' }, { first: 's0201' }],
    [{ sort: ' terminatorStrategy , name desc' }, { first: 's0201' }],
    [{ sort: 'name desc', filter: 'true sort by id desc' }, { first: 's1199' }],
    [
      { sort: 'name desc', limit: -1 },
      { first: 's0201', length: 1200 },
    ],
    [{ roleFilter: ['#odd', '#r3'] }, { totalCount: 120, first: 's0003' }],
    [{ roleFilter: ['#odd', '#r2'] }, { totalCount: 0 }],
    [
      { roleFilter: ['#odd', '#r2'], roleSemantic: 'anyof' },
      { totalCount: 720, first: 's0001' },
    ],
    [{ roleFilter: ['#r3', '@s0000', '@nope'] }, { totalCount: 121, first: 's0000' }],
    [{ roleFilter: ['#all'] }, { totalCount: 0 }],
    [{ roleFilter: [] }, { totalCount: 1200 }],
    [{ roleFilter: ['#r3'], filter: 'name contains "11"' }, { first: 's0003' }],
  ])('are applied in the query %j', (query, expected) => {
    expect(page(query)).toMatchObject(expected)
  })

  test('put records without a value first in ascending and last in descending order, and sort records with equal values by id', () => {
    log.create('identity', 'i1', { ...identity('ann'), externalId: 'b' })
    log.create('identity', 'i2', { ...identity('bob'), externalId: 'a' })
    const ids = (sort: string): string[] =>
      reader.list('identity', { sort }).records.map(({ id }) => id)
    expect(ids('externalId')).toEqual(['admin', 'i2', 'i1'])
    expect(ids('externalId desc')).toEqual(['i1', 'i2', 'admin'])
    expect(ids('isAdmin')).toEqual(['i1', 'i2', 'admin'])
  })

  test.each<[ListQuery, string]>([
    [{ roleFilter: ['odd'] }, 'roleFilter'],
    [{ roleFilter: [''] }, 'roleFilter'],
    [{ roleFilter: Array.from({ length: 101 }, () => '#a') }, 'roleFilter'],
    [{ roleFilter: ['#odd'], roleSemantic: 'some' }, 'semantic'],
  ])('are refused if they are invalid: %j', (query, field) => {
    expect(problemOf(() => page(query))).toMatchObject({
      code: 'COULD_NOT_VALIDATE',
      fault: { field },
    })
  })
})
