import type { Entity, FilterSymbol, SymbolType } from '../../entities/define.ts'
import type { Json } from '../../lib/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { CompareOperator, Expression, Literal, Operand, Query, SetExpression } from './ast.ts'
import { invalidFilter } from './scanner.ts'
import { reader, symbolNamed } from './symbols.ts'

export type Predicate = (record: EntityRecord) => boolean
/** Undefined: the value is missing. */
type ValueTest = (value: Json | undefined) => boolean
type ElementsOf = (record: EntityRecord) => readonly string[]

/** Ids in a sub-list of a record, and the kind and records that they lead to: what set symbols of policies mean. */
export interface Links {
  ids(entity: Entity, key: string, record: EntityRecord): readonly string[]
  target(entity: Entity, key: string): Entity
  record(entity: Entity, id: string): EntityRecord | undefined
}

function mismatch(name: string, type: SymbolType, operation: string, literal: string): Error {
  return invalidFilter(`${operation} is not supported with ${name} (${type}) and a ${literal}`)
}

const orders: Readonly<
  Record<Exclude<CompareOperator, '=' | '!='>, (a: Json, b: Json) => boolean>
> = {
  '<': (a, b) => a !== null && b !== null && a < b,
  '<=': (a, b) => a !== null && b !== null && a <= b,
  '>': (a, b) => a !== null && b !== null && a > b,
  '>=': (a, b) => a !== null && b !== null && a >= b,
}

/** The literal is of the symbol's type; an `any` symbol takes the literal's. */
function accepts(type: SymbolType, literal: Literal): boolean {
  if (literal.type === 'null') return false
  if (type === 'any') return true
  return type === 'stringSet' ? literal.type === 'string' : type === literal.type
}

/** A stored value of another type than the literal's matches nothing; texts of tags may be times. */
function sameType(value: Json | undefined, literal: Literal): Json | undefined {
  if (literal.type === 'datetime') {
    if (typeof value !== 'string') return typeof value === 'number' ? value : undefined
    const timeMs = Date.parse(value)
    return Number.isNaN(timeMs) ? undefined : timeMs
  }
  return typeof value === literal.type ? value : undefined
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
  if (operator === '=') return (value) => sameType(value, literal) === wanted
  if (operator === '!=') return (value) => sameType(value, literal) !== wanted
  const holds = orders[operator]
  return (value) => {
    const own = sameType(value, literal)
    return own !== undefined && holds(own, wanted)
  }
}

function inTest(name: string, type: SymbolType, values: readonly Literal[]): ValueTest {
  const [first] = values
  if (first === undefined || !accepts(type, first)) {
    throw mismatch(name, type, 'in', first?.type ?? 'list')
  }
  const wanted = new Set(values.map((literal) => (literal.type === 'null' ? null : literal.value)))
  return (value) => {
    const own = sameType(value, first)
    return own !== undefined && wanted.has(own as string | number)
  }
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
  const upper = part.toUpperCase()
  return (value) => {
    if (typeof value !== 'string' && typeof value !== 'number') return false
    const text = String(value)
    return ignoresCase ? text.toUpperCase().includes(upper) : text.includes(part)
  }
}

/** Turns a checked query into closures. @throws {Problem} INVALID_FILTER where symbols and types do not fit. */
export class Compiler {
  readonly #links: Links

  constructor(links: Links) {
    this.#links = links
  }

  predicate(entity: Entity, expression: Expression): Predicate {
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

  /** A symbol standing alone is a boolean one. */
  #flag(entity: Entity, name: string): Predicate {
    const symbol = symbolNamed(entity, name)
    if (symbol.type !== 'boolean' && symbol.type !== 'any') {
      throw invalidFilter(`${name} is no boolean symbol`)
    }
    const read = reader(symbol)
    return (record) => read(record) === true
  }

  #operation(
    entity: Entity,
    expression: Extract<Expression, { readonly operand: Operand }>,
  ): Predicate {
    const { operand } = expression
    if (operand.type === 'count') {
      const size = this.#size(entity, operand.set)
      const test = valueTest(expression, `count(${operand.set.name})`, 'number')
      return (record) => test(size(record))
    }
    const symbol = symbolNamed(entity, operand.name)
    const test = valueTest(expression, symbol.name, symbol.type)
    if (operand.type === 'symbol') {
      if (symbol.type === 'stringSet') {
        throw invalidFilter(`${symbol.name} is a set: use anyOf, allOf, count or isEmpty`)
      }
      const read = reader(symbol)
      return (record) => test(read(record))
    }
    const elements = this.#elements(entity, symbol)
    if (operand.type === 'anyOf') return (record) => elements(record).some(test)
    return (record) => elements(record).every(test)
  }

  #elements(entity: Entity, symbol: FilterSymbol): ElementsOf {
    if (symbol.type !== 'stringSet') throw invalidFilter(`${symbol.name} is no set`)
    const { list } = symbol
    if (list !== null) return (record) => this.#links.ids(entity, list, record)
    const read = reader(symbol)
    return (record) => (read(record) ?? []) as readonly string[]
  }

  #size(entity: Entity, set: SetExpression): (record: EntityRecord) => number {
    const symbol = symbolNamed(entity, set.name)
    const elements = this.#elements(entity, symbol)
    if (set.query === null) return (record) => elements(record).length
    if (symbol.list === null) {
      throw invalidFilter(`${set.name} leads to no records that could be queried`)
    }
    return this.#linked(this.#links.target(entity, symbol.list), elements, set.query)
  }

  #linked(target: Entity, elements: ElementsOf, query: Query): (record: EntityRecord) => number {
    const test = query.where === null ? null : this.predicate(target, query.where)
    const skip = Math.max(0, query.skip ?? 0)
    const limit = typeof query.limit === 'number' ? Math.max(0, query.limit) : Infinity
    return (record) => {
      let count = 0
      for (const id of elements(record)) {
        const linked = this.#links.record(target, id)
        if (linked !== undefined && (test === null || test(linked))) count += 1
      }
      return Math.min(Math.max(0, count - skip), limit)
    }
  }
}

function valueTest(
  expression: Extract<Expression, { readonly operand: Operand }>,
  name: string,
  type: SymbolType,
): ValueTest {
  switch (expression.type) {
    case 'compare':
      return compareTest(name, type, expression.operator, expression.value)
    case 'in':
      return inTest(name, type, expression.values)
    case 'between':
      return betweenTest(name, type, expression.low, expression.high)
    case 'contains':
      return containsTest(name, type, expression.value, expression.ignoresCase)
  }
}
