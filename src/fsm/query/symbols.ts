import type { Entity, FilterSymbol } from '../../entities/define-entity.ts'
import type { LiveFilterField } from '../../entities/fields.ts'
import { Problem } from '../../lib/problems.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { compareText } from '../../lib/text/text-order.ts'
import type { Literal, SortField } from './ast.ts'
import { invalidFilterProblem } from './scanner.ts'
import type { Comparison } from './value-tests.ts'

/** Reads a live value about a record, which is computed and not read from a field. */
export type LiveFieldReader = (record: EntityRecord, fact: LiveFilterField) => Json | undefined

export type RecordOrder = (a: EntityRecord, b: EntityRecord) => number

const tagPrefix = 'tags.'

/** Names that a filter on the kind may use. `StateView.filterableFields` returns them. */
export function symbolNames(entity: Entity<string>): string[] {
  return entity.symbols.map((symbol) => symbol.name)
}

function find(entity: Entity<string>, name: string): FilterSymbol | null {
  const symbol = entity.symbols.find((candidate) => candidate.name === name)
  if (symbol !== undefined) return symbol
  if (!name.startsWith(tagPrefix)) return null
  const path = ['tags', name.slice(tagPrefix.length)]
  return {
    name,
    type: 'any',
    path,
    live: null,
    list: null,
    of: null,
    through: null,
    numbered: null,
  }
}

function unknown(name: string): string {
  return `unknown symbol ${name.slice(0, 128)}`
}

/**
 * The symbol with that name.
 * @throws {Problem} INVALID_FILTER for an unknown symbol.
 */
export function requireSymbol(entity: Entity<string>, name: string): FilterSymbol {
  const symbol = find(entity, name)
  if (symbol === null) throw invalidFilterProblem(unknown(name))
  return symbol
}

/** Reads the value of a symbol; undefined when the value is missing or null. */
export function createSymbolReader(
  symbol: FilterSymbol,
  readLive: LiveFieldReader,
): (record: EntityRecord) => Json | undefined {
  const { live } = symbol
  if (live !== null) return (record) => readLive(record, live)
  const [first = '', ...rest] = symbol.path
  if (rest.length === 0) return (record) => record[first] ?? undefined
  return (record) => {
    let value: Json | undefined = record[first]
    for (const key of rest) {
      if (value === null || typeof value !== 'object' || !Object.hasOwn(value, key))
        return undefined
      value = (value as JsonObject)[key]
    }
    return value ?? undefined
  }
}

function compareValues(a: Json, b: Json): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b)
  if (a === b || a === null || b === null) return 0
  return a < b ? -1 : 1
}

function orderBy(entity: Entity<string>, field: SortField, readLive: LiveFieldReader): RecordOrder {
  const symbol = find(entity, field.name)
  if (symbol === null) throw new Problem('INVALID_SORT_IDENTIFIER', { detail: unknown(field.name) })
  if (symbol.type === 'any' || symbol.type === 'stringSet') {
    const detail = `${field.name.slice(0, 128)} can not be sorted by`
    throw new Problem('INVALID_SORT_IDENTIFIER', { detail })
  }
  const read = createSymbolReader(symbol, readLive)
  const missing = symbol.type === 'boolean' ? false : null
  const sign = field.isDescending ? -1 : 1
  return (a, b) => {
    const left = read(a) ?? missing
    const right = read(b) ?? missing
    // Missing values come first in ascending order, and last in descending order.
    if (left === null || right === null) return left === right ? 0 : left === null ? -sign : sign
    return sign * compareValues(left, right)
  }
}

/**
 * Compares records by the sort fields; equal records are ordered by id.
 * @throws {Problem} INVALID_SORT_IDENTIFIER for a symbol that is unknown, has several values, or
 * has the type `any`.
 */
export function sortComparator(
  entity: Entity<string>,
  fields: readonly SortField[],
  readLive: LiveFieldReader,
): RecordOrder {
  const orders = fields.map((field) => orderBy(entity, field, readLive))
  return (a, b) => {
    for (const order of orders) {
      const difference = order(a, b)
      if (difference !== 0) return difference
    }
    return compareText(a.id, b.id)
  }
}

/**
 * Like `sortComparator`, for a sort clause in a filter, where an unknown symbol is a fault of the
 * filter.
 */
export function filterSortComparator(
  entity: Entity<string>,
  fields: readonly SortField[],
  readLive: LiveFieldReader,
): RecordOrder {
  for (const { name } of fields) requireSymbol(entity, name)
  return sortComparator(entity, fields, readLive)
}

/**
 * Replaces numbers with names in a comparison, because OpenZiti clients also filter a policy type
 * by its number.
 */
export function replaceTypeNumbers({ numbered }: FilterSymbol, operation: Comparison): Comparison {
  if (numbered === null) return operation
  const spelled = (literal: Literal): Literal => {
    const value = literal.type === 'number' ? numbered[literal.value - 1] : undefined
    return value === undefined ? literal : { type: 'string', value }
  }
  if (operation.type === 'compare') return { ...operation, value: spelled(operation.value) }
  return operation.type === 'in'
    ? { ...operation, values: operation.values.map(spelled) }
    : operation
}
