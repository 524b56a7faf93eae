import type { Entity } from '../../entities/define-entity.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import type { ListQuery, ListResult, SteppedListing } from '../../ports/state-view.ts'
import { idsByAttributes } from '../records/roles.ts'
import { type IdScope, SetScope } from '../records/sorted-ids.ts'
import type { Records } from '../records/table.ts'
import type { Expression, ParsedQuery, Query, SortField } from './ast.ts'
import {
  collectPage,
  type ListOrder,
  type PageBounds,
  type ListedRecords,
  unpagedListRowsMax,
} from './collect-page.ts'
import { QueryCompiler, type QueryLinks } from './evaluate.ts'
import { parseQuery, parseSort } from './parser.ts'
import { candidateIds, type Candidates, isScanCheaper } from './candidate-ids.ts'
import {
  filterSortComparator,
  sortComparator,
  type LiveFieldReader,
  type RecordOrder,
  requireSymbol,
} from './symbols.ts'
import { queryLimits } from './scanner.ts'
import { ScanPacer, QueryCostCounter } from './query-cost.ts'

export const pageLimits = {
  /**
   * Number of records on a page if the request has no `limit`, or a `limit` below 1 other than -1.
   */
  limitDefault: 10,
  /** Maximum records on a page; a larger `limit` counts as this value. */
  limitMax: 500,
  /**
   * Maximum rows of a list that is requested without a limit. A client assumes that such a list is
   * complete, so a longer list is refused and never truncated.
   */
  wholeListRowsMax: unpagedListRowsMax,
  /** Maximum `offset` of a page; a larger `offset` counts as this value. */
  offsetMax: 100_000,
  /**
   * Maximum entries in `roleFilter` of one request; a request with more fails with 400
   * COULD_NOT_VALIDATE.
   */
  roleFiltersMax: 100,
} as const

interface CountedSource extends ListedRecords {
  /** Upper limit for the number of records that must be read. */
  readonly size: number
  /** True if all records of the source satisfy the filter. */
  readonly isExact: boolean
}

const everything: ParsedQuery = {
  where: null,
  sort: null,
  skip: null,
  limit: null,
  termsCount: 0,
}

/**
 * Whether the text consists only of blanks of the query language. Other white space makes the
 * parameter invalid.
 */
function isBlank(text: string): boolean {
  return /^[ \t\r\n]*$/.test(text)
}

function clampLimit(limit: number): number {
  if (limit === -1) return Number.MAX_SAFE_INTEGER
  if (limit < 1) return pageLimits.limitDefault
  return Math.min(limit, pageLimits.limitMax)
}

/**
 * Page of a list. `limit` and `skip` in the filter override the query parameters `limit` and
 * `offset`.
 */
export function pageOf(query: ListQuery, parsed: Query | null): PageBounds {
  const limit = parsed?.limit === 'none' ? -1 : (parsed?.limit ?? query.limit)
  const offset = parsed?.skip ?? query.offset ?? 0
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

/**
 * The order of the list. An unknown name in the filter's sort clause is a fault of the filter; in
 * the sort parameter, it is a fault of the sort parameter.
 */
function orderOf(
  entity: Entity<string>,
  query: ListQuery,
  parsed: Query,
  readLive: LiveFieldReader,
): ListOrder | null {
  if (parsed.sort !== null) {
    return listOrder(entity, parsed.sort, filterSortComparator(entity, parsed.sort, readLive))
  }
  if (query.sort === undefined || isBlank(query.sort)) return null
  const fields = sortParameter(query.sort)
  return listOrder(entity, fields, sortComparator(entity, fields, readLive))
}

function listOrder(
  entity: Entity<string>,
  fields: readonly SortField[],
  compare: RecordOrder,
): ListOrder | null {
  const [first] = fields
  if (first === undefined) return null
  const { type, path } = requireSymbol(entity, first.name)
  const isText = type === 'string' && path.length === 1
  return { compare, field: isText ? (path[0] ?? null) : null, isDescending: first.isDescending }
}

/**
 * The ids that a role filter selects; null without a role filter.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
function roleFilterIds(table: Records, query: ListQuery): IdScope | null {
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

/** Lists the records of one kind: all records of a table, or those with given ids. */
export class RecordLister {
  readonly #links: QueryLinks

  constructor(links: QueryLinks) {
    this.#links = links
  }

  /**
   * Lists in one step.
   * @param within the ids from which records are listed; null: all.
   * @throws the problems of `listing`.
   */
  list(table: Records, query: ListQuery, within: IdScope | null): ListResult {
    return runListing(this.listing(table, query, within))
  }

  /**
   * Lists in steps. Reads nothing before the first step.
   * @param within the ids from which records are listed; null: all.
   * @throws {Problem} INVALID_FILTER, INVALID_SORT_IDENTIFIER, COULD_NOT_VALIDATE.
   */
  *listing(table: Records, query: ListQuery, within: IdScope | null): SteppedListing {
    const { entity } = table
    const text = query.filter ?? ''
    const isForOthers = query.isForNonAdmin === true
    const { charactersMax, charactersOfOthersMax } = queryLimits
    const parsed = isBlank(text)
      ? everything
      : parseQuery(text, isForOthers ? charactersOfOthersMax : charactersMax)
    const { termsCount } = parsed
    const where = isTrue(parsed.where) ? null : parsed.where
    // @guard costly-filter--of-others
    const work = new QueryCostCounter(
      isForOthers ? queryLimits.workOfOthersMax : queryLimits.workMax,
    )
    const test =
      where === null ? null : new QueryCompiler(this.#links, work).predicate(entity, where)
    const order = orderOf(entity, query, parsed, this.#links.live)
    const page = pageOf(query, parsed)
    const roles = entity.hasRoleFilter ? roleFilterIds(table, query) : null
    const scope = intersect(roles, within)
    const found = where === null ? null : candidateIds(table, where, this.#links)
    const source = sourceOf(table, found, scope, order)
    if (test !== null && !source.isExact) work.spend(source.size * termsCount)
    const turns = new ScanPacer(work, termsCount)
    return yield* collectPage(table, source, source.isExact ? null : test, order, page, turns)
  }
}

/** Runs all steps without a pause. */
export function runListing(listing: SteppedListing): ListResult {
  for (;;) {
    const step = listing.next()
    if (step.done === true) return step.value
  }
}

function isTrue(where: Expression | null): boolean {
  return where?.type === 'constant' && where.value
}

function intersect(a: IdScope | null, b: IdScope | null): IdScope | null {
  if (a === null || b === null) return a ?? b
  const [small, large] = a.size < b.size ? [a, b] : [b, a]
  const both = new Set<string>()
  for (const id of small) if (large.has(id)) both.add(id)
  return new SetScope(both)
}

/** The ids to search: candidates from an index, the given ids, or the whole table. */
function sourceOf(
  table: Records,
  found: Candidates | null,
  scope: IdScope | null,
  order: ListOrder | null,
): CountedSource {
  const all = { ids: scope ?? table.ids, size: (scope ?? table.ids).size, stretch: null }
  if (found === null) return { ...all, isExact: false }
  const { size, isExact, stretch } = found
  if (scope === null) {
    // If the candidates are exact and already in the requested order, a page is a slice, whatever
    // the number of candidates. Otherwise each candidate has to be looked up, so for many
    // candidates a scan takes less time.
    const isInOrder = order === null && isExact && stretch === null
    const isStretch = stretch !== null && stretch.field === (order === null ? 'id' : order.field)
    if (!isInOrder && !isStretch && isScanCheaper(table, size)) return { ...all, isExact: false }
    return { ids: found.ids(), size, isExact, stretch }
  }
  if (scope.size < size) return { ...all, isExact: false }
  const both = new Set<string>()
  for (const id of found.ids()) if (scope.has(id)) both.add(id)
  return { ids: new SetScope(both), size: both.size, isExact, stretch: null }
}
