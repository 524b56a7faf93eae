import type { Entity } from '../../entities/define.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import type { ListQuery, ListResult } from '../../ports/state-view.ts'
import { idsByAttributes } from '../roles.ts'
import { SetScope, SortedIds } from '../sorted-ids.ts'
import type { IdScope } from '../sorted-ids.ts'
import type { Table } from '../state.ts'
import type { Query, SortField } from './ast.ts'
import { Compiler } from './evaluate.ts'
import type { Links, Predicate } from './evaluate.ts'
import { parseQuery, parseSort } from './parser.ts'
import { candidates } from './plan.ts'
import { invalidFilter } from './scanner.ts'
import { comparator } from './symbols.ts'

export const pageLimits = {
  limitDefault: 10,
  limitMax: 500,
  offsetMax: 100_000,
  roleFiltersMax: 100,
} as const

/** Pages up to here keep only the best records while they look at all; beyond, they sort everything. */
const boundedSortMax = 2048

interface Page {
  readonly offset: number
  readonly limit: number
}

const everything: Query = { where: null, sort: null, skip: null, limit: null }

function clampLimit(limit: number): number {
  if (limit === -1) return Number.MAX_SAFE_INTEGER
  if (limit < 1) return pageLimits.limitDefault
  return Math.min(limit, pageLimits.limitMax)
}

/** What the filter says of paging wins over the parameters, each for itself. */
function pageOf(query: ListQuery, parsed: Query): Page {
  const limit = parsed.limit === 'none' ? -1 : (parsed.limit ?? query.limit)
  const offset = parsed.skip ?? query.offset ?? 0
  return {
    limit: clampLimit(limit ?? pageLimits.limitDefault),
    offset: Math.min(Math.max(0, offset), pageLimits.offsetMax),
  }
}

function sortParameter(sort: string): readonly SortField[] {
  try {
    return parseSort(sort)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem('INVALID_SORT_IDENTIFIER', { detail: error.message })
  }
}

/** Unknown names are the filter's fault inside it, and the sort parameter's there. */
function orderOf(
  entity: Entity,
  query: ListQuery,
  parsed: Query,
): ((a: EntityRecord, b: EntityRecord) => number) | null {
  const { sort } = parsed
  if (sort !== null) {
    for (const { name } of sort) {
      if (!name.startsWith('tags.') && !entity.symbols.some((symbol) => symbol.name === name)) {
        throw invalidFilter(`unknown symbol ${name.slice(0, 128)}`)
      }
    }
    return comparator(entity, sort)
  }
  if (query.sort === undefined || query.sort.trim() === '') return null
  return comparator(entity, sortParameter(query.sort))
}

/** The ids that a role filter means; null when there is none. @throws {Problem} COULD_NOT_VALIDATE. */
function roleFilterIds(table: Table, query: ListQuery): IdScope | null {
  const semantic = roleSemantic(query.roleSemantic)
  const filters = query.roleFilter ?? []
  if (filters.length === 0) return null
  if (filters.length > pageLimits.roleFiltersMax) {
    throw fieldProblem('roleFilter', `must have at most ${pageLimits.roleFiltersMax} entries`)
  }
  const found = new Set<string>()
  const attributes: string[] = []
  for (const filter of filters) {
    const name = filter.slice(1)
    if (filter.startsWith('#')) attributes.push(name)
    else if (!filter.startsWith('@')) {
      throw fieldProblem('roleFilter', 'must be prefixed with # or @', filter.slice(0, 128))
    } else if (table.rows.has(name)) found.add(name)
  }
  for (const id of idsByAttributes(table, attributes, semantic)) found.add(id)
  return new SetScope(found)
}

function roleSemantic(text: string | undefined): 'AllOf' | 'AnyOf' {
  const lower = (text ?? '').toLowerCase()
  if (lower === '' || lower === 'allof') return 'AllOf'
  if (lower === 'anyof') return 'AnyOf'
  throw fieldProblem('semantic', 'must be AllOf or AnyOf', text?.slice(0, 128))
}

/** Puts a record where it belongs in a sorted array that keeps at most `max`. */
function insertBounded(
  kept: EntityRecord[],
  record: EntityRecord,
  order: (a: EntityRecord, b: EntityRecord) => number,
  max: number,
): void {
  const last = kept.at(-1)
  if (kept.length >= max && last !== undefined && order(record, last) >= 0) return
  let low = 0
  let high = kept.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = kept[middle]
    if (other !== undefined && order(other, record) <= 0) low = middle + 1
    else high = middle
  }
  kept.splice(low, 0, record)
  if (kept.length > max) kept.pop()
}

/** Lists the records of one kind: all of a table, or those of a given set of ids. */
export class Lister {
  readonly #compiler: Compiler

  constructor(links: Links) {
    this.#compiler = new Compiler(links)
  }

  /**
   * `within`: the ids to choose from, null for all.
   * @throws {Problem} INVALID_FILTER, INVALID_SORT_IDENTIFIER, COULD_NOT_VALIDATE.
   */
  list(entity: Entity, table: Table, query: ListQuery, within: IdScope | null): ListResult {
    const text = query.filter ?? ''
    const parsed = text.trim() === '' ? everything : parseQuery(text)
    const test = parsed.where === null ? null : this.#compiler.predicate(entity, parsed.where)
    const order = orderOf(entity, query, parsed)
    const page = pageOf(query, parsed)
    const scope = intersect(roleFilterIds(table, query), within)
    const found = parsed.where === null ? null : candidates(entity, table, parsed.where)
    if (found === null || (scope !== null && scope.size < found.size)) {
      return collect(table, scope ?? table.ids, test, order, page)
    }
    const ids = scope === null ? found.ids() : [...found.ids()].filter((id) => scope.has(id))
    return collect(table, ids, found.isExact ? null : test, order, page)
  }
}

function intersect(a: IdScope | null, b: IdScope | null): IdScope | null {
  if (a === null || b === null) return a ?? b
  return new SetScope(new Set([...a].filter((id) => b.has(id))))
}

function collect(
  table: Table,
  ids: Iterable<string>,
  test: Predicate | null,
  order: ((a: EntityRecord, b: EntityRecord) => number) | null,
  { offset, limit }: Page,
): ListResult {
  const quick = test === null && order === null ? sliceOf(ids, offset, limit) : null
  if (quick !== null) {
    const records = quick.ids.map((id) => table.get(id)).filter((record) => record !== undefined)
    return { records, limit, offset, totalCount: quick.total }
  }
  const isWhole = ids === table.ids
  const records = isWhole ? recordsOf(table) : recordsNamed(table, ids)
  // Memory is walked in the order in which records were made: by id, each would be a miss of the cache.
  return pick(records, test, order ?? (isWhole ? byId : null), { offset, limit })
}

function byId(a: EntityRecord, b: EntityRecord): number {
  return a.id < b.id ? -1 : 1
}

function* recordsOf(table: Table): Iterable<EntityRecord> {
  for (const { record } of table.rows.values()) yield record
}

function* recordsNamed(table: Table, ids: Iterable<string>): Iterable<EntityRecord> {
  for (const id of ids) {
    const record = table.get(id)
    if (record !== undefined) yield record
  }
}

/** `order` null: the records come in the order wanted. */
function pick(
  records: Iterable<EntityRecord>,
  test: Predicate | null,
  order: ((a: EntityRecord, b: EntityRecord) => number) | null,
  { offset, limit }: Page,
): ListResult {
  const end = offset + limit
  let total = 0
  const kept: EntityRecord[] = []
  const isBounded = order !== null && end <= boundedSortMax
  for (const record of records) {
    if (test !== null && !test(record)) continue
    total += 1
    if (isBounded) insertBounded(kept, record, order, end)
    else if (order !== null || (total > offset && total <= end)) kept.push(record)
  }
  if (order === null) return { records: kept, limit, offset, totalCount: total }
  if (!isBounded) kept.sort(order)
  return { records: kept.slice(offset, end), limit, offset, totalCount: total }
}

/** A page by position, where the ids can give one without being walked. */
function sliceOf(
  ids: Iterable<string>,
  offset: number,
  limit: number,
): { readonly ids: readonly string[]; readonly total: number } | null {
  if (Array.isArray(ids)) {
    const list = ids as readonly string[]
    return { ids: list.slice(offset, offset + limit), total: list.length }
  }
  const isScope = ids instanceof SortedIds || ids instanceof SetScope
  return isScope ? { ids: ids.slice(offset, limit), total: ids.size } : null
}
