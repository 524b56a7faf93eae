import type { SortedIds } from '../records/sorted-ids.ts'
import type { Records } from '../records/table.ts'

/** A range in the ordered values of a field: positions `start` to `end - 1`. */
export interface IndexRange {
  readonly field: string
  readonly start: number
  readonly end: number
}

interface Bound {
  readonly value: string
  /** True: the bound itself belongs to the range. */
  readonly isInclusive: boolean
}

/** Lower and upper bounds of a text value, all of which must hold. */
export interface TextBounds {
  readonly low: readonly Bound[]
  readonly high: readonly Bound[]
}

/** The indexed values of a field in order, or the ids for `id`; null if they are not indexed. */
export function orderedValues(table: Records, field: string): SortedIds | null {
  return field === 'id' ? table.ids : table.indexes.values(field)
}

/** Whether each value belongs to only one record. */
export function isUniqueField(table: Records, field: string): boolean {
  return field === 'id' || table.indexes.isUnique(field)
}

/** Whether every record has a value in the order, so that it orders all records. */
export function ordersAllRecords(table: Records, field: string): boolean {
  return isUniqueField(table, field) && orderedValues(table, field)?.size === table.rows.size
}

/** Ids of the records with those values of a unique field, in their order. */
export function idsByUniqueValues(
  table: Records,
  field: string,
  values: readonly string[],
): readonly string[] {
  return field === 'id' ? values : values.map((value) => table.indexes.owner(field, value) ?? '')
}

/**
 * Number of values before the bound; includes the bound itself if it is excluded from the range.
 */
function positionOf(values: SortedIds, value: string, isPassedOver: boolean): number {
  return values.rank(value) + (isPassedOver && values.has(value) ? 1 : 0)
}

/** The values in the range; null if the range may contain records that are not in the order. */
export function indexRange(
  table: Records,
  field: string,
  { low, high }: TextBounds,
): IndexRange | null {
  const values = orderedValues(table, field)
  if (values === null) return null
  // Empty texts come before all others, and no index contains them.
  const isBeyondEmpty = low.some(({ value, isInclusive }) => value !== '' || !isInclusive)
  if (!isBeyondEmpty && !ordersAllRecords(table, field)) return null
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
