import type {
  CompareOperator,
  Expression,
  Literal,
  Operand,
  ParsedQuery,
  Query,
  SetExpression,
  SortField,
} from './ast.ts'
import { QueryScanner, invalidFilterProblem, queryLimits } from './scanner.ts'

const sortFieldsMax = 5
const operators: readonly CompareOperator[] = ['!=', '<=', '>=', '=', '<', '>']
/** Keywords; they cannot be symbols. */
const reserved = new Set(
  'and or not in between contains icontains true false null sort by asc desc skip limit none anyof allof count isempty from where'.split(
    ' ',
  ),
)

/** Parses OpenZiti's query language by recursive descent. Each parser object parses one text. */
class Parser {
  readonly #scanner: QueryScanner
  #depth = 0
  #terms = 0
  #subQueries = 0

  constructor(text: string, charactersMax?: number) {
    this.#scanner = new QueryScanner(text, charactersMax)
  }

  whole(): ParsedQuery {
    const query = this.#query()
    if (!this.#scanner.isAtEnd) throw this.#scanner.unexpected()
    return { ...query, termsCount: this.#terms }
  }

  /** Parses the body of a `sort by` clause. */
  wholeSort(): readonly SortField[] {
    this.#scanner.blanks()
    const fields = this.#sortFields()
    this.#scanner.blanks()
    if (!this.#scanner.isAtEnd) throw this.#scanner.unexpected()
    return fields
  }

  #query(): Query {
    const scanner = this.#scanner
    scanner.blanks()
    const start = scanner.peekWord()?.toLowerCase() ?? ''
    const isPaging = start === 'sort' || start === 'skip' || start === 'limit'
    const where = isPaging ? null : this.#expression()
    // A blank must precede a clause, unless the clause begins the query.
    let isFirst = isPaging
    const takes = (keyword: string): boolean => {
      if (isFirst) {
        if (!scanner.takeKeyword(keyword)) return false
        isFirst = false
        return true
      }
      return scanner.takeBlankKeyword(keyword) !== null
    }
    const sort = takes('sort') ? this.#sortClause() : null
    const skip = takes('skip') ? this.#count() : null
    const limit = takes('limit') ? this.#limitClause() : null
    scanner.blanks()
    return { where, sort, skip, limit }
  }

  #sortClause(): readonly SortField[] {
    this.#scanner.requireBlanks()
    this.#scanner.requireKeyword('by')
    this.#scanner.requireBlanks()
    return this.#sortFields()
  }

  #sortFields(): readonly SortField[] {
    const scanner = this.#scanner
    const fields: SortField[] = []
    for (;;) {
      const name = this.#identifier()
      const direction = scanner.takeBlankKeyword('asc', 'desc')
      fields.push({ name, isDescending: direction === 'desc' })
      const end = scanner.at
      scanner.blanks()
      if (!scanner.take(',')) {
        scanner.at = end
        return fields.slice(0, sortFieldsMax)
      }
      scanner.blanks()
      if (fields.length > queryLimits.termsMax) throw invalidFilterProblem('the filter is too long')
    }
  }

  #count(): number {
    this.#scanner.requireBlanks()
    const start = this.#scanner.at
    const literal = this.#scanner.takeNumber()
    if (literal?.type !== 'number' || !Number.isSafeInteger(literal.value)) {
      this.#scanner.at = start
      throw this.#scanner.unexpected()
    }
    return literal.value
  }

  #limitClause(): number | 'none' {
    return this.#scanner.takeBlankKeyword('none') === null ? this.#count() : 'none'
  }

  /**
   * Parses a nested expression, and limits the depth of the nesting. Every nested expression is
   * parsed through this function.
   */
  #nested<T>(read: () => T): T {
    this.#depth += 1
    if (this.#depth > queryLimits.depthMax)
      throw invalidFilterProblem('the filter is nested too deep')
    const result = read()
    this.#depth -= 1
    return result
  }

  /**
   * `and` and `or` have the same precedence and group to the right: `a and b or c` is
   * `a and (b or c)`.
   */
  #expression(): Expression {
    const operands: Expression[] = [this.#primary()]
    const joints: ('and' | 'or')[] = []
    for (;;) {
      const joint = this.#scanner.takeBlankKeyword('and', 'or')
      if (joint === null) break
      this.#scanner.requireBlanks()
      joints.push(joint === 'and' ? 'and' : 'or')
      operands.push(this.#primary())
    }
    return foldRight(operands, joints)
  }

  #primary(): Expression {
    const scanner = this.#scanner
    this.#terms += 1
    if (this.#terms > queryLimits.termsMax)
      throw invalidFilterProblem('the filter has too many terms')
    if (scanner.take('(')) {
      scanner.blanks()
      const inner = this.#nested(() => this.#expression())
      scanner.blanks()
      scanner.require(')')
      return inner
    }
    const word = scanner.peekWord()
    switch (word?.toLowerCase()) {
      case 'true':
      case 'false':
        scanner.at += word?.length ?? 0
        return { type: 'constant', value: word?.toLowerCase() === 'true' }
      case 'not':
        return this.#not()
      case 'isempty':
        scanner.at += word?.length ?? 0
        return { type: 'isEmpty', set: this.#setInParentheses() }
      default:
        return this.#operation()
    }
  }

  /** `not` applies to the whole rest of the expression: `not a and b` is `not (a and b)`. */
  #not(): Expression {
    this.#scanner.requireKeyword('not')
    this.#scanner.requireBlanks()
    return { type: 'not', operand: this.#nested(() => this.#expression()) }
  }

  #identifier(): string {
    const word = this.#scanner.peekName()
    if (word === null || reserved.has(word.toLowerCase())) throw this.#scanner.unexpected()
    this.#scanner.at += word.length
    return word
  }

  #setInParentheses(): SetExpression {
    const scanner = this.#scanner
    scanner.require('(')
    scanner.blanks()
    let set: SetExpression
    if (scanner.takeKeyword('from')) {
      scanner.requireBlanks()
      const name = this.#identifier()
      scanner.requireBlanks()
      scanner.requireKeyword('where')
      scanner.requireBlanks()
      this.#subQueries += 1
      if (this.#subQueries > queryLimits.subQueriesMax) {
        throw invalidFilterProblem('the filter has too many queries in it')
      }
      set = { name, query: this.#nested(() => this.#query()) }
    } else {
      set = { name: this.#identifier(), query: null }
    }
    scanner.blanks()
    scanner.require(')')
    return set
  }

  #operand(): Operand {
    const scanner = this.#scanner
    for (const type of ['anyOf', 'allOf'] as const) {
      if (!scanner.takeKeyword(type)) continue
      scanner.require('(')
      scanner.blanks()
      const name = this.#identifier()
      scanner.blanks()
      scanner.require(')')
      return { type, name }
    }
    if (scanner.takeKeyword('count')) return { type: 'count', set: this.#setInParentheses() }
    return { type: 'symbol', name: this.#identifier() }
  }

  #operation(): Expression {
    const operand = this.#operand()
    const end = this.#scanner.at
    const isApart = this.#scanner.blanks() > 0
    const operator = operators.find((candidate) => this.#scanner.take(candidate))
    if (operator !== undefined) return this.#comparison(operand, operator)
    const operation = this.#wordOperation(operand, isApart)
    if (operation !== null) return operation
    this.#scanner.at = end
    if (operand.type === 'symbol') return operand
    this.#scanner.blanks()
    throw this.#scanner.unexpected()
  }

  #comparison(operand: Operand, operator: CompareOperator): Expression {
    const scanner = this.#scanner
    scanner.blanks()
    const value = this.#ordered() ?? (operator.endsWith('=') ? this.#word(operator) : null)
    if (value === null) throw scanner.unexpected()
    return { type: 'compare', operand, operator, value }
  }

  /** Parses true, false or null, which only = and != accept. */
  #word(operator: CompareOperator): Literal | null {
    if (operator !== '=' && operator !== '!=') return null
    if (this.#scanner.takeKeyword('null')) return { type: 'null' }
    if (this.#scanner.takeKeyword('true')) return { type: 'boolean', value: true }
    return this.#scanner.takeKeyword('false') ? { type: 'boolean', value: false } : null
  }

  #ordered(): Literal | null {
    const scanner = this.#scanner
    return scanner.takeString() ?? scanner.takeDatetime() ?? scanner.takeNumber()
  }

  /**
   * Parses an operator that is a word. Called after the optional blanks that follow the operand;
   * `in` and `between` require a blank (`isApart`).
   * @returns null, with nothing consumed, if no such operator follows.
   */
  #wordOperation(operand: Operand, isApart: boolean): Expression | null {
    const scanner = this.#scanner
    const start = scanner.at
    const isNegated = scanner.takeKeyword('not')
    const blanks = isNegated ? scanner.blanks() : 0
    if (isNegated && blanks === 0) throw scanner.unexpected()
    const word = scanner.peekWord()?.toLowerCase()
    // The two words of `not in` must be separated by exactly one blank.
    if (word === 'in' && isNegated && blanks !== 1) throw scanner.unexpected()
    if (!isApart && (word === 'in' || word === 'between')) {
      scanner.at = start
      throw scanner.unexpected()
    }
    const operation = this.#operationOf(word, operand)
    if (operation === null && isNegated) throw scanner.unexpected()
    return isNegated && operation !== null ? { type: 'not', operand: operation } : operation
  }

  #operationOf(word: string | undefined, operand: Operand): Expression | null {
    switch (word) {
      case 'in':
        this.#afterWord('in')
        return { type: 'in', operand, values: this.#array() }
      case 'between':
        this.#afterWord('between')
        return this.#between(operand)
      case 'contains':
      case 'icontains':
        this.#afterWord(word)
        return this.#contains(operand, word === 'icontains')
      default:
        return null
    }
  }

  #afterWord(keyword: string): void {
    this.#scanner.requireKeyword(keyword)
    this.#scanner.requireBlanks()
  }

  #between(operand: Operand): Expression {
    const scanner = this.#scanner
    const low = scanner.takeDatetime() ?? scanner.takeNumber()
    if (low === null) throw scanner.unexpected()
    scanner.requireBlanks()
    scanner.requireKeyword('and')
    scanner.requireBlanks()
    const start = scanner.at
    const high = scanner.takeDatetime() ?? scanner.takeNumber()
    if (high?.type !== low.type) {
      scanner.at = start
      throw scanner.unexpected()
    }
    return { type: 'between', operand, low, high }
  }

  #contains(operand: Operand, ignoresCase: boolean): Expression {
    const scanner = this.#scanner
    const value = scanner.takeString() ?? (ignoresCase ? null : scanner.takeNumber())
    if (value === null) throw scanner.unexpected()
    return { type: 'contains', operand, value, ignoresCase }
  }

  #array(): readonly Literal[] {
    const scanner = this.#scanner
    const values: Literal[] = []
    scanner.require('[')
    do {
      scanner.blanks()
      const start = scanner.at
      const value = this.#ordered()
      if (value === null || (values[0] !== undefined && values[0].type !== value.type)) {
        scanner.at = start
        throw scanner.unexpected()
      }
      values.push(value)
      if (values.length > queryLimits.arrayMax) throw invalidFilterProblem('the list is too long')
      scanner.blanks()
    } while (scanner.take(','))
    scanner.require(']')
    return values
  }
}

function foldRight(operands: readonly Expression[], joints: readonly ('and' | 'or')[]): Expression {
  let right = operands.at(-1) ?? { type: 'constant', value: true }
  for (let i = joints.length - 1; i >= 0; i -= 1) {
    const left = operands[i]
    const type = joints[i]
    if (left !== undefined && type !== undefined) right = { type, left, right }
  }
  return right
}

/**
 * Parses a filter.
 * @throws {Problem} INVALID_FILTER; for a syntax error, with symbol, line and column.
 */
export function parseQuery(text: string, charactersMax?: number): ParsedQuery {
  return new Parser(text, charactersMax).whole()
}

/**
 * Parses the sort parameter.
 * @throws {Problem} INVALID_FILTER; the caller must report it as a fault of the sort parameter.
 */
export function parseSort(text: string): readonly SortField[] {
  return new Parser(text).wholeSort()
}
