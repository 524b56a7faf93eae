import type { Entity, FilterSymbol, SymbolType } from '../../entities/define-entity.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { assert } from '../../lib/assert.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { type IdScope, emptyIds } from '../records/sorted-ids.ts'
import type { Records } from '../records/table.ts'
import type { Expression, Query, SetExpression } from './ast.ts'
import { candidateIds } from './candidate-ids.ts'
import { invalidFilterProblem } from './scanner.ts'
import {
  filterSortComparator,
  type LiveFieldReader,
  createSymbolReader,
  replaceTypeNumbers,
  requireSymbol,
} from './symbols.ts'
import { type Comparison, createValueTest, type ValueTest } from './value-tests.ts'
import type { QueryCostCounter } from './query-cost.ts'

/** Number of characters of a text whose search takes as long as the test of one term. */
const testCharacters = 32

export type RecordPredicate = (record: EntityRecord) => boolean

/**
 * Links that symbols follow: from a record to the records in its sub-lists, and to records of other
 * kinds.
 */
export interface QueryLinks {
  ids(entity: Entity<string>, key: string, record: EntityRecord): IdScope
  /** Whether `ids` would contain the id; computed without all ids. */
  holds(entity: Entity<string>, key: string, record: EntityRecord, id: string): boolean
  /** The records of a kind; null for a kind whose records are not stored. */
  table(kind: KindName): Records | null
  readonly live: LiveFieldReader
}

/** Links for records without relations. */
export const noQueryLinks: QueryLinks = {
  ids: () => emptyIds,
  holds: () => false,
  table: () => null,
  live: () => undefined,
}

/** Reads the set of values that a symbol has for a record. */
interface SetReader {
  size(record: EntityRecord): number
  has(record: EntityRecord, element: string): boolean
  elements(record: EntityRecord): Iterable<string>
}

interface ValueReader {
  readonly type: SymbolType
  readonly read: (record: EntityRecord) => Json | undefined
}

/**
 * Compiles a parsed query into closures for one response; the closures cache the results of
 * subqueries.
 * @throws {Problem} INVALID_FILTER for a type mismatch, INVALID_SORT_IDENTIFIER.
 */
export class QueryCompiler {
  readonly #links: QueryLinks
  readonly #work: QueryCostCounter

  constructor(links: QueryLinks, work: QueryCostCounter) {
    this.#links = links
    this.#work = work
  }

  predicate(entity: Entity<string>, expression: Expression): RecordPredicate {
    switch (expression.type) {
      case 'constant':
        return () => expression.value
      case 'and': {
        const left = this.predicate(entity, expression.left)
        const right = this.predicate(entity, expression.right)
        return (record) => left(record) && right(record)
      }
      case 'or': {
        const left = this.predicate(entity, expression.left)
        const right = this.predicate(entity, expression.right)
        return (record) => left(record) || right(record)
      }
      case 'not': {
        const operand = this.predicate(entity, expression.operand)
        return (record) => !operand(record)
      }
      case 'symbol':
        return this.#flag(entity, expression.name)
      case 'isEmpty': {
        const size = this.#size(entity, expression.set)
        return (record) => size(record) === 0
      }
      default:
        return this.#operation(entity, expression)
    }
  }

  /** Compiles a symbol without an operator, which must have the type `boolean` or `any`. */
  #flag(entity: Entity<string>, name: string): RecordPredicate {
    const { type, read } = this.#value(entity, requireSymbol(entity, name))
    if (type !== 'boolean' && type !== 'any')
      throw invalidFilterProblem(`${name} is no boolean symbol`)
    return (record) => read(record) === true
  }

  #operation(entity: Entity<string>, operation: Comparison): RecordPredicate {
    const { operand } = operation
    if (operand.type === 'count') {
      const size = this.#size(entity, operand.set)
      const test = createValueTest(operation, `count(${operand.set.name})`, 'number')
      return (record) => test(size(record))
    }
    const symbol = requireSymbol(entity, operand.name)
    if (operand.type !== 'symbol') return this.#quantified(entity, symbol, operand.type, operation)
    const { type, read } = this.#value(entity, symbol)
    const spelled = replaceTypeNumbers(symbol, operation)
    const test = this.#charged(spelled, createValueTest(spelled, symbol.name, type))
    if (type === 'stringSet') {
      throw invalidFilterProblem(`${symbol.name} is a set: use anyOf, allOf, count or isEmpty`)
    }
    return (record) => test(read(record))
  }

  /**
   * Adds the cost of searching long texts to a `contains` test. (The list counts one unit for each
   * tested term in advance.)
   */
  #charged({ type }: Comparison, test: ValueTest): ValueTest {
    // @guard costly-texts--charge
    if (type !== 'contains') return test
    const work = this.#work
    return (value) => {
      if (typeof value === 'string') work.spend(Math.floor(value.length / testCharacters))
      return test(value)
    }
  }

  #quantified(
    entity: Entity<string>,
    symbol: FilterSymbol,
    quantifier: 'anyOf' | 'allOf',
    operation: Comparison,
  ): RecordPredicate {
    const set = this.#set(entity, symbol)
    const test = this.#charged(operation, createValueTest(operation, symbol.name, symbol.type))
    if (quantifier === 'allOf') {
      return (record) => {
        for (const element of set.elements(record)) if (!test(element)) return false
        return true
      }
    }
    if (operation.type === 'compare' && operation.operator === '=') {
      const { value } = operation
      const wanted = value.type === 'string' ? value.value : ''
      return (record) => set.has(record, wanted)
    }
    return (record) => {
      for (const element of set.elements(record)) if (test(element)) return true
      return false
    }
  }

  /**
   * Reads the single value of a symbol: from the record itself, or from a record that it
   * references.
   */
  #value(entity: Entity<string>, symbol: FilterSymbol): ValueReader {
    const own = createSymbolReader(symbol, this.#links.live)
    if (symbol.through === null) return { type: symbol.type, read: own }
    const table = symbol.of === null ? null : this.#links.table(symbol.of)
    assert(table !== null, `there are records for ${entity.name}.${symbol.name} to lead to`)
    const { type, read } = this.#value(table.entity, requireSymbol(table.entity, symbol.through))
    return {
      type,
      read: (record) => {
        const id = own(record)
        const named = typeof id === 'string' ? table.get(id) : undefined
        return named === undefined ? undefined : read(named)
      },
    }
  }

  #set(entity: Entity<string>, symbol: FilterSymbol): SetReader {
    if (symbol.type !== 'stringSet') throw invalidFilterProblem(`${symbol.name} is no set`)
    const { list } = symbol
    if (list !== null) return this.#linkedSet(entity, list)
    const read = createSymbolReader(symbol, this.#links.live)
    const elements = (record: EntityRecord): readonly string[] =>
      (read(record) ?? []) as readonly string[]
    return {
      size: (record) => elements(record).length,
      has: (record, element) => elements(record).includes(element),
      elements,
    }
  }

  #linkedSet(entity: Entity<string>, list: string): SetReader {
    const links = this.#links
    const work = this.#work
    const scope = (record: EntityRecord): IdScope => {
      const ids = links.ids(entity, list, record)
      work.spend(ids.size)
      return ids
    }
    return {
      size: (record) => scope(record).size,
      has: (record, id) => {
        work.spend(1)
        return links.holds(entity, list, record, id)
      },
      elements: scope,
    }
  }

  #size(entity: Entity<string>, { name, query }: SetExpression): (record: EntityRecord) => number {
    const symbol = requireSymbol(entity, name)
    const set = this.#set(entity, symbol)
    if (query === null) return (record) => set.size(record)
    const kind = symbol.list === null ? symbol.of : entity.lists[symbol.list]?.of
    const table = kind === null || kind === undefined ? null : this.#links.table(kind)
    if (table === null)
      throw invalidFilterProblem(`${name} leads to no records that could be queried`)
    const meant = this.#meant(table, query)
    const skip = Math.max(0, query.skip ?? 0)
    const isLimited = typeof query.limit === 'number' && query.limit >= 0
    const limit = isLimited ? Number(query.limit) : Infinity
    return (record) => {
      const wanted = meant()
      let count = 0
      for (const id of set.elements(record)) if (wanted.has(id)) count += 1
      return Math.min(Math.max(0, count - skip), limit)
    }
  }

  /**
   * The ids of the records of another kind that a subquery selects. They are computed at the first
   * call.
   */
  #meant(table: Records, { where, sort }: Query): () => ReadonlySet<string> {
    if (sort !== null) filterSortComparator(table.entity, sort, this.#links.live)
    const test = where === null ? null : this.predicate(table.entity, where)
    let found: ReadonlySet<string> | null = null
    return () => {
      found ??= this.#matching(table, where, test)
      return found
    }
  }

  #matching(
    table: Records,
    where: Expression | null,
    test: RecordPredicate | null,
  ): ReadonlySet<string> {
    const few = where === null ? null : candidateIds(table, where, this.#links)
    this.#work.spend(few?.size ?? table.rows.size)
    const matching = new Set<string>()
    for (const id of few?.ids() ?? table.rows.keys()) {
      const record = table.get(id)
      if (record !== undefined && (test === null || test(record))) matching.add(id)
    }
    return matching
  }
}
