import type { SortedIds } from '../records/sorted-ids.ts'
import type { Records } from '../records/table.ts'

/** A range of positions in the sorted values of a field: `start` to `end - 1`. */
export interface IndexRange {
  readonly field: string
  readonly start: number
  readonly end: number
}

interface Bound {
  readonly value: string
  /** True if the range includes the bound itself. */
  readonly isInclusive: boolean
}

/** Lower and upper bounds for a text value; the value must satisfy all of them. */
export interface TextBounds {
  readonly low: readonly Bound[]
  readonly high: readonly Bound[]
}

/**
 * The sorted values of an indexed field, or all ids for `id`; null if the values are not indexed in
 * order.
 */
export function orderedValues(table: Records, field: string): SortedIds | null {
  return field === 'id' ? table.ids : table.indexes.values(field)
}

/** Whether at most one record has each value. */
export function isUniqueField(table: Records, field: string): boolean {
  return field === 'id' || table.indexes.isUnique(field)
}

/**
 * Whether every record has a value among the sorted values, so that their order is an order of all
 * records.
 */
export function isTotalOrder(table: Records, field: string): boolean {
  return isUniqueField(table, field) && orderedValues(table, field)?.size === table.rows.size
}

/** Ids of the records that have these values of a unique field, in the order of the values. */
export function idsByUniqueValues(
  table: Records,
  field: string,
  values: readonly string[],
): readonly string[] {
  return field === 'id' ? values : values.map((value) => table.indexes.owner(field, value) ?? '')
}

/** Number of values before the bound. With `isPassedOver`, the bound itself also counts. */
function positionOf(values: SortedIds, value: string, isPassedOver: boolean): number {
  return values.rank(value) + (isPassedOver && values.has(value) ? 1 : 0)
}

/**
 * The range of values within the bounds; null if records without an indexed value may also be
 * within the bounds, or if the values are not indexed in order.
 */
export function indexRange(
  table: Records,
  field: string,
  { low, high }: TextBounds,
): IndexRange | null {
  const values = orderedValues(table, field)
  if (values === null) return null
  // The empty string sorts before all others, and no index contains it. The range must therefore
  // exclude the empty string, or the index must contain every record.
  const isBeyondEmpty = low.some(({ value, isInclusive }) => value !== '' || !isInclusive)
  if (!isBeyondEmpty && !isTotalOrder(table, field)) return null
  let start = 0
  let end = values.size
  for (const { value, isInclusive } of low) {
    start = Math.max(start, positionOf(values, value, !isInclusive))
  }
  for (const { value, isInclusive } of high) {
    end = Math.min(end, positionOf(values, value, isInclusive))
  }
  return { field, start, end: Math.max(start, end) }
}
