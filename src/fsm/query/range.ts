import type { SortedIds } from '../records/sorted-ids.ts'
import type { Records } from '../records/table.ts'

/** A stretch of the values of a field in their order: positions start to end - 1. */
export interface IndexRange {
  readonly field: string
  readonly start: number
  readonly end: number
}

interface Bound {
  readonly value: string
  /** The value itself lies within. */
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

/** Each value belongs to one record. */
export function isUniqueField(table: Records, field: string): boolean {
  return field === 'id' || table.indexes.isUnique(field)
}

/** Whether the ordered values cover every record, so that they give the order of all records. */
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

/** Number of values before the bound; the bound itself counts too if it is excluded. */
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
  // Empty texts are below all others, and in no index.
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
