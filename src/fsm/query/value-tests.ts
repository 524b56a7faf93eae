import type { SymbolType } from '../../entities/define-entity.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import { createTextSearch } from '../../lib/text/text-search.ts'
import { compareText } from '../../lib/text/text-order.ts'
import type { CompareOperator, Expression, Literal, Operand } from './ast.ts'
import { invalidFilterProblem } from './scanner.ts'

/** Tests a value. The value is undefined if it is missing. */
export type ValueTest = (value: Json | undefined) => boolean
/** An expression that compares an operand with literals. */
export type Comparison = Extract<Expression, { readonly operand: Operand }>

function mismatch(name: string, type: SymbolType, operation: string, literal: string): Error {
  return invalidFilterProblem(
    `${operation} is not supported with ${name} (${type}) and a ${literal}`,
  )
}

/**
 * Whether the literal has the symbol's type. A symbol of type `any` accepts every literal except
 * null.
 */
function accepts(type: SymbolType, literal: Literal): boolean {
  if (literal.type === 'null') return false
  if (type === 'any') return true
  return type === 'stringSet' ? literal.type === 'string' : type === literal.type
}

/**
 * JavaScript type of the stored values that a literal can match. Values of another type do not
 * match.
 */
function storedType(type: SymbolType, literal: Literal): 'string' | 'number' | 'boolean' | null {
  if (literal.type === 'datetime') return type === 'datetime' ? 'number' : null
  return literal.type === 'null' ? null : literal.type
}

type Order = Exclude<CompareOperator, '=' | '!='>

const orders: Readonly<Record<Order, (difference: number) => boolean>> = {
  '<': (difference) => difference < 0,
  '<=': (difference) => difference <= 0,
  '>': (difference) => difference > 0,
  '>=': (difference) => difference >= 0,
}

function orderTest(operator: Order, stored: 'string' | 'number', wanted: Json): ValueTest {
  const holds = orders[operator]
  if (stored === 'string') {
    const text = String(wanted)
    return (value) => typeof value === 'string' && holds(compareText(value, text))
  }
  const number = Number(wanted)
  // Compares without subtraction, because the difference between two infinite values is not a
  // number.
  return (value) =>
    typeof value === 'number' && holds(value < number ? -1 : value === number ? 0 : 1)
}

function compareTest(
  name: string,
  type: SymbolType,
  operator: CompareOperator,
  literal: Literal,
): ValueTest {
  if (literal.type === 'null') {
    if (type === 'stringSet') throw mismatch(name, type, operator, 'null')
    return operator === '=' ? (value) => value === undefined : (value) => value !== undefined
  }
  const isOrder = operator !== '=' && operator !== '!='
  if (!accepts(type, literal) || (isOrder && literal.type === 'boolean')) {
    throw mismatch(name, type, operator, literal.type)
  }
  const wanted = literal.value
  if (type === 'boolean') {
    return (value) => ((value ?? false) === wanted) === (operator === '=')
  }
  const stored = storedType(type, literal)
  if (stored === null) return () => operator === '!='
  if (operator === '=') return (value) => value === wanted
  if (operator === '!=') return (value) => value !== wanted
  return stored === 'boolean' ? () => false : orderTest(operator, stored, wanted)
}

function inTest(name: string, type: SymbolType, values: readonly Literal[]): ValueTest {
  const [first] = values
  if (first === undefined || !accepts(type, first)) {
    throw mismatch(name, type, 'in', first?.type ?? 'list')
  }
  if (storedType(type, first) === null) return () => false
  const wanted = new Set<Json | undefined>()
  for (const literal of values) if (literal.type !== 'null') wanted.add(literal.value)
  return (value) => wanted.has(value)
}

function betweenTest(name: string, type: SymbolType, low: Literal, high: Literal): ValueTest {
  const from = compareTest(name, type, '>=', low)
  const to = compareTest(name, type, '<', high)
  return (value) => from(value) && to(value)
}

function containsTest(
  name: string,
  type: SymbolType,
  literal: Literal,
  ignoresCase: boolean,
): ValueTest {
  const isText = type === 'string' || type === 'stringSet' || type === 'any'
  if (literal.type === 'null' || (!isText && type !== 'number') || (ignoresCase && !isText)) {
    throw mismatch(name, type, ignoresCase ? 'icontains' : 'contains', literal.type)
  }
  const part = String(literal.value)
  const indexOfPart = createTextSearch(ignoresCase ? part.toUpperCase() : part)
  return (value) => {
    const text = typeof value === 'number' ? String(value) : value
    if (typeof text !== 'string') return false
    return indexOfPart(ignoresCase ? text.toUpperCase() : text, 0) >= 0
  }
}

/**
 * Returns a function that checks whether a value satisfies the comparison.
 * @throws {Problem} INVALID_FILTER when the types do not match.
 */
export function createValueTest(operation: Comparison, name: string, type: SymbolType): ValueTest {
  switch (operation.type) {
    case 'compare':
      return compareTest(name, type, operation.operator, operation.value)
    case 'in':
      return inTest(name, type, operation.values)
    case 'between':
      return betweenTest(name, type, operation.low, operation.high)
    case 'contains':
      return containsTest(name, type, operation.value, operation.ignoresCase)
  }
}
