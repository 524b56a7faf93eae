import type { Json } from '../../../src/lib/text/canonical-json.ts'
import { kinds, type Meaning, type Plain, type World } from './kinds.ts'
import type { Lhs, Paging, Row, SetExpr, SubQuery, Term, Value } from './language.ts'

export interface Asked extends SubQuery {
  readonly kind: string
  /** Parameters of the query other than the filter. */
  readonly parameters: {
    readonly sort: Paging['sort']
    readonly limit: number | null
    readonly offset: number | null
    readonly roleFilter: readonly string[]
    readonly roleSemantic: string | null
  }
  /** The IDs of the records to choose from; null for all records. */
  readonly within: readonly string[] | null
}

export interface Found {
  readonly ids: readonly string[]
  readonly totalCount: number
  readonly limit: number
  readonly offset: number
}

const bytesOrder = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** Evaluates a query according to its grammar, record by record, without indexes or preparation. */
export class Twin {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  list(asked: Asked): Found {
    const { kind, parameters, within } = asked
    const all = this.#world
      .records(kind)
      .filter((record) => record['isFabricOnly'] !== true)
      .filter((record) => within === null || within.includes(record.id))
      .filter((record) => this.#isOfRoles(record, asked))
      .filter((record) => asked.row === null || this.#holds(asked.row, record, kind))
    const sort = asked.sort.length > 0 ? asked.sort : parameters.sort
    const sorted = [...all].sort((a, b) => this.#order(kind, sort, a, b))
    const limit = clamped(asked.limit === 'none' ? -1 : (asked.limit ?? parameters.limit ?? 10))
    const offset = Math.min(Math.max(asked.skip ?? parameters.offset ?? 0, 0), 100_000)
    const ids = sorted.map(({ id }) => id).slice(offset, offset + limit)
    const shown = limit === Number.MAX_SAFE_INTEGER ? -1 : limit
    return { ids, totalCount: all.length, limit: shown, offset }
  }

  #isOfRoles(record: Plain, { kind, parameters }: Asked): boolean {
    const { roleFilter, roleSemantic } = parameters
    if (roleFilter.length === 0 || (kind !== 'identity' && kind !== 'service')) return true
    if (roleFilter.includes(`@${record.id}`)) return true
    const asked = roleFilter.filter((role) => role.startsWith('#')).map((role) => role.slice(1))
    const own = record['roleAttributes'] as readonly string[]
    if (roleSemantic?.toLowerCase() === 'anyof') return asked.some((role) => own.includes(role))
    return asked.length > 0 && asked.every((role) => own.includes(role))
  }

  #order(kind: string, sort: Paging['sort'], a: Plain, b: Plain): number {
    for (const { symbol, direction } of sort.slice(0, 5)) {
      const { of } = symbolOf(kind, symbol)
      const difference = orderOf(of(a, this.#world), of(b, this.#world))
      if (difference !== 0) return direction === 'desc' ? -difference : difference
    }
    return bytesOrder(a.id, b.id)
  }

  #holds({ first, joint, rest }: Row, record: Plain, kind: string): boolean {
    const left = this.#isTrue(first, record, kind)
    if (joint === null || rest === null) return left
    const right = this.#holds(rest, record, kind)
    return joint === 'and' ? left && right : left || right
  }

  #isTrue(term: Term, record: Plain, kind: string): boolean {
    switch (term.is) {
      case 'constant':
        return term.value
      case 'flag':
        return symbolOf(kind, term.symbol).of(record, this.#world) === true
      case 'empty':
        return this.#size(term.set, record, kind) === 0
      case 'group':
        return this.#holds(term.row, record, kind)
      case 'not':
        return !this.#holds(term.row, record, kind)
      case 'compare':
        return this.#some(term.lhs, record, kind, (value, type) =>
          compares(value, type, term.operator, term.value),
        )
      case 'in': {
        const isIn = this.#some(term.lhs, record, kind, (value, type) =>
          term.values.some((one) => compares(value, type, '=', one)),
        )
        return isIn !== term.negated
      }
      case 'between': {
        const isBetween = this.#some(
          term.lhs,
          record,
          kind,
          (value, type) =>
            compares(value, type, '>=', term.low) && compares(value, type, '<', term.high),
        )
        return isBetween !== term.negated
      }
      case 'contains':
      case 'icontains': {
        const contains = this.#some(term.lhs, record, kind, (value) =>
          holdsText(value, String(term.value.value), term.is === 'icontains'),
        )
        return contains !== term.negated
      }
    }
  }

  /** Evaluates a condition on a single value, on any element of a set, or on all of them. */
  #some(
    lhs: Lhs,
    record: Plain,
    kind: string,
    test: (value: Json, type: Meaning['type']) => boolean,
  ): boolean {
    if (lhs.of === 'count') return test(this.#size(lhs.set, record, kind), 'number')
    const { of, type } = symbolOf(kind, lhs.symbol)
    const value = of(record, this.#world)
    if (lhs.of === 'one') return test(value, type)
    const elements = value as readonly string[]
    const isSo = (element: string): boolean => test(element, 'text')
    return lhs.of === 'anyOf' ? elements.some(isSo) : elements.every(isSo)
  }

  #size({ symbol, query }: SetExpr, record: Plain, kind: string): number {
    const { of, leadsTo } = symbolOf(kind, symbol)
    const elements = of(record, this.#world) as readonly string[]
    if (query === null || leadsTo === undefined) return elements.length
    const { row } = query
    const found = elements
      .map((id) => this.#world.records(leadsTo).find((other) => other.id === id))
      .filter((other) => other !== undefined)
      .filter((other) => row === null || this.#holds(row, other, leadsTo))
    const skipped = found.slice(query.skip ?? 0)
    return (typeof query.limit === 'number' ? skipped.slice(0, query.limit) : skipped).length
  }
}

function clamped(limit: number): number {
  if (limit === -1) return Number.MAX_SAFE_INTEGER
  return limit < 1 ? 10 : Math.min(limit, 500)
}

function symbolOf(kind: string, symbol: string): Meaning {
  const meaning = kinds[kind]?.[symbol]
  if (meaning === undefined) throw new Error(`${kind} has no symbol ${symbol}`)
  return meaning
}

/** Orders missing values before all others. */
function orderOf(a: Json, b: Json): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null)
  if (typeof a === 'string' && typeof b === 'string') return bytesOrder(a, b)
  return Number(a) - Number(b)
}

const javaScriptTypes = {
  text: 'string',
  number: 'number',
  bool: 'boolean',
  time: 'number',
} as const

function compares(value: Json, type: Meaning['type'], operator: string, wanted: Value): boolean {
  if (wanted.type === 'null') return (value === null) === (operator === '=')
  const isOfType =
    typeof value === javaScriptTypes[wanted.type] && (wanted.type !== 'time' || type === 'time')
  if (!isOfType) return operator === '!='
  const difference = orderOf(value, wanted.value)
  switch (operator) {
    case '=':
      return difference === 0
    case '!=':
      return difference !== 0
    case '<':
      return difference < 0
    case '<=':
      return difference <= 0
    case '>':
      return difference > 0
    default:
      return difference >= 0
  }
}

function holdsText(value: Json, part: string, ignoresCase: boolean): boolean {
  if (typeof value !== 'string' && typeof value !== 'number') return false
  const text = String(value)
  if (!ignoresCase) return text.includes(part)
  return text.toUpperCase().includes(part.toUpperCase())
}
