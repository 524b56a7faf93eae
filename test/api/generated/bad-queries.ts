/** A query that a list must refuse. */
export interface BadQuery {
  readonly query: string
  readonly codes: readonly string[]
}

const filters: readonly string[] = [
  'name',
  'name =',
  'name = "x',
  "name = 'x'",
  'name == "x"',
  'nme = "x"',
  'id = "x" and',
  'id = "x" and and id = "y"',
  'and id = "x"',
  '(id = "x"',
  'id = "x")',
  '()',
  'not(id = "x")',
  'not',
  'id in []',
  'id in ["x"',
  'id in[ "x" ]',
  'id not  in ["x"]',
  'id in ["x", 1]',
  'createdAt > 5',
  'createdAt > datetime(tomorrow)',
  'createdAt > datetime(2024-13-45T00:00:00Z)',
  'createdAt between 1 and 2',
  'id between "a" and "b"',
  'id contains"x"',
  'isSystem = "x"',
  'anyOf(id) = "x"',
  'count(id) > 1',
  'isEmpty(id)',
  'id = null null',
  'true limit -',
  'true limit x',
  'true skip',
  'true limit 5 skip 5',
  'limit 5 limit 5',
  'sort by',
  'sort by id sort by id',
  'id = "\u0000"',
  'id = "\\x"',
  '"x" = id',
  '1',
  ';',
  '%',
  'a'.repeat(5000),
  `${'('.repeat(2000)}true${')'.repeat(2000)}`,
  'not '.repeat(3000) + 'true',
]
const sorts: readonly string[] = [
  'nothing',
  'id up',
  'id,',
  ',',
  'id asc desc',
  'tags',
  'tags.x',
  '1',
]
const numbers: readonly string[] = [
  'none',
  '1.5',
  '1e3',
  '0x10',
  '--1',
  '99999999999999999999',
  ' 1',
]

export const badListQueries: readonly BadQuery[] = [
  ...filters.map((text) => ({
    query: `filter=${encodeURIComponent(text)}`,
    codes: ['INVALID_FILTER'],
  })),
  ...sorts.map((text) => ({
    query: `sort=${encodeURIComponent(text)}`,
    codes: ['INVALID_SORT_IDENTIFIER', 'INVALID_FILTER'],
  })),
  ...['limit', 'offset'].flatMap((name) =>
    numbers.map((text) => ({
      query: `${name}=${encodeURIComponent(text)}`,
      codes: ['COULD_NOT_VALIDATE'],
    })),
  ),
]

/** Queries that a list must accept, however unusual. */
export const goodListQueries: readonly string[] = [
  'limit=0',
  'limit=-1',
  'limit=-5',
  'limit=501',
  'limit=999999999999999999',
  'offset=-1',
  'offset=100001',
  'limit=&offset=&filter=&sort=',
  'limit=1&limit=none',
  'filter=limit%20none',
  'filter=sort%20by%20id%20desc%20skip%201%20limit%202',
  'filter=true',
  'filter=false',
  'filter=not%20id%20%3D%20%22x%22',
  'filter=tags.x%20!%3D%20null',
  'sort=id%20desc',
  'nonsense=1',
]
