import type { FilterSymbol } from '../../entities/define-entity.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { SetScope, type SortedIds } from '../records/sorted-ids.ts'
import type { Records } from '../records/table.ts'
import type { Expression, Literal } from './ast.ts'
import {
  isUniqueField,
  orderedValues,
  idsByUniqueValues,
  type TextBounds,
  type IndexRange,
  indexRange,
} from './range.ts'
import { replaceTypeNumbers, requireSymbol } from './symbols.ts'
import type { Comparison } from './value-tests.ts'

/** Access to the records of other kinds to which symbols refer. */
interface Tables {
  table(kind: KindName): Records | null
}

/** A set of records that includes all records that match an expression. */
export interface Candidates {
  /** Upper limit for the number of candidates. */
  readonly size: number
  /** The candidates' ids, sorted and without duplicates. */
  ids(): Iterable<string>
  /** True if every candidate satisfies the expression and need not be tested again. */
  readonly isExact: boolean
  /**
   * Set if the candidates are exactly the records whose value of a unique field is in this range;
   * otherwise null.
   */
  readonly stretch: IndexRange | null
}

/**
 * If the candidates are more than this fraction of a table, a scan of all records takes less time.
 */
const scanShare = 1 / 4
/** Up to this number of candidates, lookups cost less than a scan of any table. */
const lookUpsMin = 64
/** Maximum number of values and intermediate records that are read to find candidates. */
const stepsMax = 2000

/** Whether looking up this many records costs more than a scan of the table. */
export function isScanCheaper(table: Records, size: number): boolean {
  return size > Math.max(lookUpsMin, table.rows.size * scanShare)
}

const none: Candidates = { size: 0, ids: () => [], isExact: true, stretch: null }

function one(id: string): Candidates {
  return { size: 1, ids: () => [id], isExact: true, stretch: null }
}

function postings(ids: SortedIds): Candidates {
  return { size: ids.size, ids: () => ids, isExact: true, stretch: null }
}

/**
 * The union of the candidates; null when one of the parts is null, or when the union may contain
 * too many candidates.
 */
function union(table: Records, parts: readonly (Candidates | null)[]): Candidates | null {
  const [first] = parts
  if (parts.length === 1 && first !== undefined) return first
  const known = parts.filter((part) => part !== null)
  const size = known.reduce((sum, part) => sum + part.size, 0)
  if (known.length < parts.length || isScanCheaper(table, size)) return null
  return {
    size,
    ids: () => {
      const ids = new Set<string>()
      for (const part of known) for (const id of part.ids()) ids.add(id)
      return new SetScope(ids)
    },
    isExact: known.every((part) => part.isExact),
    stretch: null,
  }
}

/** The stored field of a symbol, if an index can find records by the field's values. */
function indexedField(table: Records, { path, list, through }: FilterSymbol): string | null {
  const [field] = path
  if (list !== null || through !== null || path.length !== 1 || field === undefined) return null
  return isUniqueField(table, field) || table.indexes.isIndexed(field) ? field : null
}

/**
 * Candidates with exactly this value. null for the empty string: records may have it, but no index
 * contains the empty string.
 */
function lookUp(table: Records, field: string, value: string): Candidates | null {
  if (field === 'id') return table.rows.has(value) ? one(value) : none
  if (value === '') return null
  if (!table.indexes.isUnique(field)) return postings(table.indexes.ids(field, value))
  const owner = table.indexes.owner(field, value)
  return owner === undefined ? none : one(owner)
}

function withinRange(table: Records, field: string, range: TextBounds): Candidates | null {
  const values = orderedValues(table, field)
  const stretch = indexRange(table, field, range)
  if (values === null || stretch === null) return null
  const { start, end } = stretch
  const own = (): string[] => values.slice(start, end - start)
  if (!isUniqueField(table, field)) {
    return end - start > stepsMax
      ? null
      : union(
          table,
          own().map((value) => lookUp(table, field, value)),
        )
  }
  const owners = (): readonly string[] => idsByUniqueValues(table, field, own())
  return {
    size: end - start,
    ids: field === 'id' ? own : () => new SetScope(new Set(owners())),
    isExact: true,
    stretch,
  }
}

function textOf(literal: Literal): string | null {
  return literal.type === 'string' ? literal.value : null
}

/**
 * Candidates for `=` or `in`, by the values of an indexed field; null for every other comparison,
 * and if the index cannot find the value.
 */
function byValues(table: Records, field: string, operation: Comparison): Candidates | null {
  if (operation.type === 'in') {
    const values = operation.values.map(textOf).filter((value) => value !== null)
    return union(
      table,
      values.map((value) => lookUp(table, field, value)),
    )
  }
  const value = operation.type === 'compare' ? textOf(operation.value) : null
  if (operation.type !== 'compare' || value === null) return null
  return operation.operator === '=' ? lookUp(table, field, value) : null
}

/** The bounds that a comparison sets for the text values of a sorted index. */
function boundsOf(
  table: Records,
  expression: Expression,
): { readonly field: string; readonly range: TextBounds } | null {
  if (expression.type !== 'compare' || expression.operand.type !== 'symbol') return null
  const { operator, value } = expression
  if (operator === '=' || operator === '!=' || value.type !== 'string') return null
  const field = indexedField(table, requireSymbol(table.entity, expression.operand.name))
  if (field === null || orderedValues(table, field) === null) return null
  const bound = { value: value.value, isInclusive: operator.endsWith('=') }
  const isLow = operator.startsWith('>')
  return { field, range: isLow ? { low: [bound], high: [] } : { low: [], high: [bound] } }
}

/**
 * Candidates for a symbol of another kind: the records that reference a matching record of that
 * kind.
 */
function throughOthers(
  table: Records,
  symbol: FilterSymbol,
  operation: Comparison,
  tables: Tables,
): Candidates | null {
  const other = symbol.of === null ? null : tables.table(symbol.of)
  const [field] = symbol.path
  if (other === null || symbol.through === null || field === undefined) return null
  const named = { ...operation, operand: { type: 'symbol', name: symbol.through } } as const
  const found = candidateIds(other, named, tables)
  if (found === null || found.size > stepsMax || !table.indexes.isIndexed(field)) return null
  const parts = Array.from(found.ids(), (id) => lookUp(table, field, id))
  const all = parts.length === 0 ? none : union(table, parts)
  return all === null ? null : { ...all, isExact: all.isExact && found.isExact }
}

function ofOperation(table: Records, operation: Comparison, tables: Tables): Candidates | null {
  const { operand } = operation
  if (operand.type !== 'symbol' && operand.type !== 'anyOf') return null
  const symbol = requireSymbol(table.entity, operand.name)
  if (symbol.through !== null) return throughOthers(table, symbol, operation, tables)
  const bounds = boundsOf(table, operation)
  if (bounds !== null) return withinRange(table, bounds.field, bounds.range)
  if (symbol.type === 'boolean') {
    const isTrue =
      operation.type === 'compare' &&
      operation.value.type === 'boolean' &&
      operation.value.value === (operation.operator === '=')
    return isTrue ? ofFlag(table, symbol) : null
  }
  if (symbol.type !== (operand.type === 'anyOf' ? 'stringSet' : 'string')) return null
  const field = indexedField(table, symbol)
  return field === null ? null : byValues(table, field, replaceTypeNumbers(symbol, operation))
}

/**
 * The records whose flag is true; null if the flag has no index. A test for false scans the table.
 */
function ofFlag(table: Records, symbol: FilterSymbol): Candidates | null {
  const field = symbol.type === 'boolean' ? indexedField(table, symbol) : null
  return field === null ? null : postings(table.indexes.ids(field, 'true'))
}

/** All operands of a chain of the same operator, collected without recursion. */
function operandsOf(expression: Expression, joint: 'and' | 'or'): Expression[] {
  const operands: Expression[] = []
  const pending = [expression]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (next.type === joint) pending.push(next.right, next.left)
    else operands.push(next)
  }
  return operands
}

/**
 * Candidates for `and`: uses the operand with the fewest candidates; comparisons of the same field
 * are first combined to a range. The evaluator then tests the other operands.
 */
function ofRow(table: Records, expression: Expression, tables: Tables): Candidates | null {
  const operands = operandsOf(expression, 'and')
  const ranges = new Map<
    string,
    { low: TextBounds['low']; high: TextBounds['high']; count: number }
  >()
  let best: Candidates | null = null
  const consider = (found: Candidates | null, isWhole: boolean): void => {
    if (found === null || (best !== null && best.size <= found.size)) return
    best = { ...found, isExact: isWhole && found.isExact }
  }
  for (const operand of operands) {
    const bounds = boundsOf(table, operand)
    if (bounds === null) {
      consider(candidateIds(table, operand, tables), false)
      continue
    }
    const { low, high, count } = ranges.get(bounds.field) ?? { low: [], high: [], count: 0 }
    ranges.set(bounds.field, {
      low: [...low, ...bounds.range.low],
      high: [...high, ...bounds.range.high],
      count: count + 1,
    })
  }
  for (const [field, range] of ranges) {
    consider(withinRange(table, field, range), range.count === operands.length)
  }
  return best
}

/**
 * Candidate records for a validated expression, from the indexes; null when no index reduces their
 * number. For `or`, every operand must have candidates; for `and`, only one.
 */
export function candidateIds(
  table: Records,
  expression: Expression,
  tables: Tables,
): Candidates | null {
  switch (expression.type) {
    case 'and':
      return ofRow(table, expression, tables)
    case 'or':
      return union(
        table,
        operandsOf(expression, 'or').map((operand) => candidateIds(table, operand, tables)),
      )
    case 'symbol':
      return ofFlag(table, requireSymbol(table.entity, expression.name))
    case 'compare':
    case 'in':
    case 'between':
    case 'contains':
      return ofOperation(table, expression, tables)
    case 'constant':
      return expression.value ? null : none
    case 'not':
    case 'isEmpty':
      return null
  }
}
