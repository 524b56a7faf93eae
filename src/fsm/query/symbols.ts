import type { Entity, FilterSymbol } from '../../entities/define.ts'
import { Problem } from '../../lib/problems.ts'
import type { Json, JsonObject } from '../../lib/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { SortField } from './ast.ts'
import { invalidFilter } from './scanner.ts'

const tagPrefix = 'tags.'

/** Names that a filter on the kind may use, as `filterableFields` lists them. */
export function symbolNames(entity: Entity): string[] {
  return entity.symbols.map((symbol) => symbol.name)
}

function find(entity: Entity, name: string): FilterSymbol | null {
  const symbol = entity.symbols.find((candidate) => candidate.name === name)
  if (symbol !== undefined) return symbol
  if (!name.startsWith(tagPrefix)) return null
  return { name, type: 'any', path: ['tags', name.slice(tagPrefix.length)], list: null }
}

/** @throws {Problem} INVALID_FILTER: symbols are public or they are unknown. */
export function symbolNamed(entity: Entity, name: string): FilterSymbol {
  const symbol = find(entity, name)
  if (symbol === null) throw invalidFilter(`unknown symbol ${name.slice(0, 128)}`)
  return symbol
}

/** The value of a symbol; undefined when it is missing or null. */
export function reader(symbol: FilterSymbol): (record: EntityRecord) => Json | undefined {
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

function sortProblem(detail: string): Problem {
  return new Problem('INVALID_SORT_IDENTIFIER', { detail })
}

function orderOf(entity: Entity, field: SortField): (a: EntityRecord, b: EntityRecord) => number {
  const symbol = find(entity, field.name)
  if (symbol === null) throw sortProblem(`unknown symbol ${field.name.slice(0, 128)}`)
  if (symbol.type === 'any' || symbol.type === 'stringSet') {
    throw sortProblem(`${field.name.slice(0, 128)} can not be sorted by`)
  }
  const read = reader(symbol)
  const isBoolean = symbol.type === 'boolean'
  const sign = field.isDescending ? -1 : 1
  return (a, b) => {
    const left = read(a) ?? (isBoolean ? false : undefined)
    const right = read(b) ?? (isBoolean ? false : undefined)
    if (left === right) return 0
    // Missing values come first in ascending order, last in descending.
    if (left === undefined || left === null) return -sign
    if (right === undefined || right === null) return sign
    return left < right ? -sign : sign
  }
}

/**
 * The order that sort fields mean, ties broken by id. @throws {Problem} INVALID_SORT_IDENTIFIER for a symbol that is
 * unknown or has no single value.
 */
export function comparator(
  entity: Entity,
  fields: readonly SortField[],
): (a: EntityRecord, b: EntityRecord) => number {
  const orders = fields.map((field) => orderOf(entity, field))
  return (a, b) => {
    for (const order of orders) {
      const difference = order(a, b)
      if (difference !== 0) return difference
    }
    return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
  }
}
