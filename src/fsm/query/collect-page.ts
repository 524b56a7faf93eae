import type { EntityRecord } from '../../lib/entity-record.ts'
import { fieldProblem } from '../../lib/problems.ts'
import { compareText } from '../../lib/text/text-order.ts'
import type { ListResult, SteppedListing } from '../../ports/state-view.ts'
import { SetScope, SortedIds } from '../records/sorted-ids.ts'
import type { Records } from '../records/table.ts'
import type { RecordPredicate } from './evaluate.ts'
import { isTotalOrder, orderedValues, idsByUniqueValues, type IndexRange } from './range.ts'
import type { RecordOrder } from './symbols.ts'
import type { ScanPacer } from './query-cost.ts'

/**
 * Up to this number of records (offset plus page), a scan stores only the first ones in sort order.
 * For later pages it sorts all matches.
 */
const boundedSortMax = 2048

/** Maximum rows of a list that is requested without a limit. */
export const unpagedListRowsMax = 100_000

export interface PageBounds {
  readonly offset: number
  readonly limit: number
}

/** The order of a list. Without an order, lists are sorted by id. */
export interface ListOrder {
  readonly compare: RecordOrder
  /** The first sort field if it is a stored text field; otherwise null. */
  readonly field: string | null
  readonly isDescending: boolean
}

/** The records from which a list is selected. */
export interface ListedRecords {
  /** Ids of the records, sorted and without duplicates. */
  readonly ids: Iterable<string>
  /**
   * Set if the records are exactly the records whose value of a unique field is in this range.
   */
  readonly stretch: IndexRange | null
}

/**
 * A page of the records that pass the test, and the number of all records that pass. `test` null:
 * all records pass. Each step does a limited part of the work. The first step copies the
 * candidates, so that later writes neither add nor repeat a record.
 */
export function* collectPage(
  table: Records,
  source: ListedRecords,
  test: RecordPredicate | null,
  order: ListOrder | null,
  page: PageBounds,
  turns: ScanPacer,
): SteppedListing {
  const stretch = walkable(table, source, order)
  // With a test, scanning the table and sorting the matches takes less time than reading the
  // records in index order, unless the source is itself this range.
  if (stretch !== null && (test === null || stretch === source.stretch)) {
    return yield* walk(table, stretch, order?.isDescending ?? false, test, page, turns)
  }
  if (test === null && order === null) {
    const quick = sliceOf(source.ids, page)
    if (quick !== null) return pageOf(table, quick.ids, quick.total, page)
  }
  const isWhole = source.ids === table.ids
  const compare = order?.compare ?? (isWhole ? byId : null)
  // The scan reads the records in the order in which the table holds them, which is fast; in the
  // order of ids, each record would cause a cache miss.
  const records = isWhole ? recordsOf(table) : recordsNamed(table, source.ids)
  return yield* pick(records, test, compare, page, turns)
}

function byId(a: EntityRecord, b: EntityRecord): number {
  return compareText(a.id, b.id)
}

function* recordsOf(table: Records): Iterable<EntityRecord> {
  for (const { record } of table.rows.values()) yield record
}

function* recordsNamed(table: Records, ids: Iterable<string>): Iterable<EntityRecord> {
  for (const id of ids) {
    const record = table.get(id)
    if (record !== undefined) yield record
  }
}

/**
 * The range of a unique field's values, if it contains exactly the records of the source in the
 * requested order; otherwise null.
 */
function walkable(
  table: Records,
  { ids, stretch }: ListedRecords,
  order: ListOrder | null,
): IndexRange | null {
  const field = order === null ? 'id' : order.field
  if (field === null) return null
  if (stretch?.field === field) return stretch
  if (ids !== table.ids || !isTotalOrder(table, field)) return null
  return { field, start: 0, end: table.rows.size }
}

/**
 * Reads records in the order of a field that is already sorted as requested. Nothing needs sorting,
 * and a page without a filter is a slice.
 */
function* walk(
  table: Records,
  { field, start, end }: IndexRange,
  isDescending: boolean,
  test: RecordPredicate | null,
  page: PageBounds,
  turns: ScanPacer,
): SteppedListing {
  const values = orderedValues(table, field)
  const total = end - start
  const isCut = test === null
  const skip = isCut ? Math.min(page.offset, total) : 0
  const length = isCut ? Math.min(page.limit, total - skip) : total
  if (isCut) checkLength(length)
  const first = isDescending ? end - skip - length : start + skip
  const own = values?.slice(first, length) ?? []
  if (isDescending) own.reverse()
  const ids = idsByUniqueValues(table, field, own)
  if (isCut) return pageOf(table, ids, total, page)
  return yield* pick(recordsNamed(table, ids), test, null, page, turns)
}

function pageOf(
  table: Records,
  ids: readonly string[],
  totalCount: number,
  { offset, limit }: PageBounds,
): ListResult {
  const records = ids.flatMap((id) => table.rows.get(id)?.record ?? [])
  return { records, limit: shownLimit(limit), offset, totalCount }
}

/** Inserts a record into a sorted array that keeps at most `max` records. */
function insertBounded(
  kept: EntityRecord[],
  record: EntityRecord,
  compare: RecordOrder,
  max: number,
): void {
  const last = kept.at(-1)
  if (kept.length >= max && last !== undefined && compare(record, last) >= 0) return
  let low = 0
  let high = kept.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = kept[middle]
    if (other !== undefined && compare(other, record) <= 0) low = middle + 1
    else high = middle
  }
  kept.splice(low, 0, record)
  if (kept.length > max) kept.pop()
}

/**
 * Selects a page from the records. `compare` null: the records already have the requested order.
 */
function* pick(
  records: Iterable<EntityRecord>,
  test: RecordPredicate | null,
  compare: RecordOrder | null,
  { offset, limit }: PageBounds,
  turns: ScanPacer,
): SteppedListing {
  const end = offset + limit
  let total = 0
  const kept: EntityRecord[] = []
  const isWhole = limit > unpagedListRowsMax
  const isBounded = compare !== null && end <= boundedSortMax
  for (const record of Array.from(records)) {
    // @guard costly-filter
    if (turns.isOver()) yield
    if (test !== null && !test(record)) continue
    total += 1
    if (isBounded) insertBounded(kept, record, compare, end)
    else if (compare !== null || (total > offset && total <= end)) kept.push(record)
    if (isWhole) checkLength(compare === null ? kept.length : kept.length - offset)
  }
  const paging = { limit: shownLimit(limit), offset, totalCount: total }
  if (compare === null) return { records: kept, ...paging }
  if (!isBounded) kept.sort(compare)
  return { records: kept.slice(offset, end), ...paging }
}

/** The limit in the response: -1 for no limit, as in OpenZiti. SDKs parse it as a 32-bit number. */
export function shownLimit(limit: number): number {
  return limit > unpagedListRowsMax ? -1 : limit
}

/**
 * Refuses a list that is too long.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
function checkLength(rows: number): void {
  if (rows <= unpagedListRowsMax) return
  const reason = `the list has more than ${unpagedListRowsMax} rows: ask for pages, with limit and offset, or filter for less`
  throw fieldProblem('limit', reason)
}

/** The ids of a page by position; null if the ids cannot be sliced without iteration. */
function sliceOf(
  ids: Iterable<string>,
  { offset, limit }: PageBounds,
): { readonly ids: readonly string[]; readonly total: number } | null {
  if (Array.isArray(ids)) {
    const list = ids as readonly string[]
    checkLength(Math.min(limit, list.length - offset))
    return { ids: list.slice(offset, offset + limit), total: list.length }
  }
  const isScope = ids instanceof SortedIds || ids instanceof SetScope
  if (!isScope) return null
  checkLength(Math.min(limit, ids.size - offset))
  return { ids: ids.slice(offset, limit), total: ids.size }
}
