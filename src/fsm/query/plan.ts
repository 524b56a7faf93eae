import type { Entity } from '../../entities/define.ts'
import type { Table } from '../state.ts'
import type { Expression, Literal, Operand } from './ast.ts'
import { symbolNamed } from './symbols.ts'

/** Where the records of an expression are to be looked for. */
export interface Candidates {
  /** Upper bound on how many. */
  readonly size: number
  /** Sorted, each once. */
  ids(): Iterable<string>
  /** Every candidate satisfies the expression: it need not be tested again. */
  readonly isExact: boolean
}

const none: Candidates = { size: 0, ids: () => [], isExact: true }

/** The stored field that a text operand reads, and whether the expression speaks of its elements. */
function indexedField(entity: Entity, table: Table, operand: Operand): string | null {
  if (operand.type !== 'symbol' && operand.type !== 'anyOf') return null
  const { path, type, list } = symbolNamed(entity, operand.name)
  const [field] = path
  if (list !== null || path.length !== 1 || field === undefined) return null
  if (operand.type === 'anyOf' ? type !== 'stringSet' : type !== 'string') return null
  const { indexes } = table
  return field === 'id' || indexes.isUnique(field) || indexes.isIndexed(field) ? field : null
}

function lookUp(table: Table, field: string, value: string): Candidates {
  if (field === 'id') return table.rows.has(value) ? one(value) : none
  // The index holds no empty texts: a record may have one all the same.
  if (value === '') return { size: table.rows.size, ids: () => table.ids, isExact: false }
  if (table.indexes.isUnique(field)) {
    const owner = table.indexes.owner(field, value)
    return owner === undefined ? none : one(owner)
  }
  const ids = table.indexes.ids(field, value)
  return { size: ids.size, ids: () => ids, isExact: true }
}

function one(id: string): Candidates {
  return { size: 1, ids: () => [id], isExact: true }
}

function union(parts: readonly Candidates[]): Candidates {
  const [first] = parts
  if (parts.length === 1 && first !== undefined) return first
  return {
    size: parts.reduce((sum, part) => sum + part.size, 0),
    ids: () => [...new Set(parts.flatMap((part) => [...part.ids()]))].sort(),
    isExact: parts.every((part) => part.isExact),
  }
}

function textOf(literal: Literal): string | null {
  return literal.type === 'string' ? literal.value : null
}

/**
 * What the indexes know of an expression: null when they do not help. `and` takes its more selective side and stays to be
 * tested; `or` needs both sides.
 */
export function candidates(
  entity: Entity,
  table: Table,
  expression: Expression,
): Candidates | null {
  switch (expression.type) {
    case 'and': {
      const left = candidates(entity, table, expression.left)
      const right = candidates(entity, table, expression.right)
      const best = left === null || (right !== null && right.size < left.size) ? right : left
      return best === null ? null : { ...best, isExact: false }
    }
    case 'or': {
      const left = candidates(entity, table, expression.left)
      const right = left === null ? null : candidates(entity, table, expression.right)
      return left === null || right === null ? null : union([left, right])
    }
    case 'compare': {
      const value = textOf(expression.value)
      if (expression.operator !== '=' || value === null) return null
      const field = indexedField(entity, table, expression.operand)
      return field === null ? null : lookUp(table, field, value)
    }
    case 'in': {
      const field = indexedField(entity, table, expression.operand)
      if (field === null) return null
      const values = expression.values.map(textOf).filter((value) => value !== null)
      return union(values.map((value) => lookUp(table, field, value)))
    }
    default:
      return null
  }
}
