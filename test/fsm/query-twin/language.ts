/**
 * A filter as the grammar parses it: the right operand of `and`, `or` and `not` is the whole rest
 * of the expression.
 */
export type Value =
  | { readonly type: 'text'; readonly value: string }
  | { readonly type: 'number'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'time'; readonly value: number }
  | { readonly type: 'null'; readonly value: null }

export interface Paging {
  readonly sort: readonly { readonly symbol: string; readonly direction: 'asc' | 'desc' | '' }[]
  readonly skip: number | null
  readonly limit: number | 'none' | null
}

export interface SubQuery extends Paging {
  readonly row: Row | null
}

export interface SetExpr {
  readonly symbol: string
  readonly query: SubQuery | null
}

export type Lhs =
  | { readonly of: 'one' | 'anyOf' | 'allOf'; readonly symbol: string }
  | { readonly of: 'count'; readonly set: SetExpr }

export type Term =
  | { readonly is: 'constant'; readonly value: boolean }
  | { readonly is: 'flag'; readonly symbol: string }
  | { readonly is: 'empty'; readonly set: SetExpr }
  | { readonly is: 'group'; readonly row: Row }
  | { readonly is: 'not'; readonly row: Row }
  | {
      readonly is: 'compare'
      readonly lhs: Lhs
      readonly operator: '=' | '!=' | '<' | '<=' | '>' | '>='
      readonly value: Value
    }
  | {
      readonly is: 'in'
      readonly lhs: Lhs
      readonly negated: boolean
      readonly values: readonly Value[]
    }
  | {
      readonly is: 'between'
      readonly lhs: Lhs
      readonly negated: boolean
      readonly low: Value
      readonly high: Value
    }
  | {
      readonly is: 'contains' | 'icontains'
      readonly lhs: Lhs
      readonly negated: boolean
      readonly value: Value
    }

/**
 * `first`, `first and rest`, or `first or rest`. A `not` is always the last element, because it
 * includes the rest.
 */
export interface Row {
  readonly first: Term
  readonly joint: 'and' | 'or' | null
  readonly rest: Row | null
}
