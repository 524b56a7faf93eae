/** A literal value in a query. In all types of this file, `at` is an offset into the query text. */
export type Literal =
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'number'; readonly value: number }
  | { readonly type: 'boolean'; readonly value: boolean }
  /**
   * UTC ms. A value with the fraction .5 represents any time between the two adjacent milliseconds.
   */
  | { readonly type: 'datetime'; readonly value: number }
  | { readonly type: 'null' }

export type CompareOperator = '=' | '!=' | '<' | '<=' | '>' | '>='

/**
 * A symbol with a set of values. With a subquery, the set contains only the records that match it.
 */
export interface SetExpression {
  readonly name: string
  readonly query: Query | null
}

export type Operand =
  | { readonly type: 'symbol'; readonly name: string }
  | { readonly type: 'anyOf' | 'allOf'; readonly name: string }
  | { readonly type: 'count'; readonly set: SetExpression }

export type Expression =
  | { readonly type: 'and' | 'or'; readonly left: Expression; readonly right: Expression }
  | { readonly type: 'not'; readonly operand: Expression }
  | { readonly type: 'constant'; readonly value: boolean }
  | { readonly type: 'symbol'; readonly name: string }
  | { readonly type: 'isEmpty'; readonly set: SetExpression }
  | {
      readonly type: 'compare'
      readonly operand: Operand
      readonly operator: CompareOperator
      readonly value: Literal
    }
  | { readonly type: 'in'; readonly operand: Operand; readonly values: readonly Literal[] }
  | {
      readonly type: 'between'
      readonly operand: Operand
      /** Lower bound, inclusive. */
      readonly low: Literal
      /** Upper bound, exclusive. */
      readonly high: Literal
    }
  | {
      readonly type: 'contains'
      readonly operand: Operand
      readonly value: Literal
      readonly ignoresCase: boolean
    }

export interface SortField {
  readonly name: string
  readonly isDescending: boolean
}

export interface Query {
  /** Condition for records; null: every record matches. */
  readonly where: Expression | null
  /** Sort order; null: the query has no sort clause. */
  readonly sort: readonly SortField[] | null
  readonly skip: number | null
  readonly limit: number | 'none' | null
}

export interface ParsedQuery extends Query {
  /** Number of terms in the whole text, including subqueries. */
  readonly termsCount: number
}
