import type { Random } from '../../../src/lib/random.ts'
import { isSortable, kinds, type Meaning, meantBy, type World } from './kinds.ts'
import type { Lhs, Paging, Row, SetExpr, SubQuery, Term, Value } from './language.ts'
import type { Asked } from './meaning.ts'
import { pick, startMs, word } from './network.ts'

const orders = ['=', '!=', '<', '<=', '>', '>='] as const

/** Creates random queries of every form of the grammar, with symbols and values of a network. */
export class Drawer {
  readonly #random: Random
  readonly #world: World

  constructor(random: Random, world: World) {
    this.#random = random
    this.#world = world
  }

  #chance(share: number): boolean {
    return this.#random.next() < share
  }

  query(): Asked {
    const kind = pick(this.#random, Object.keys(kinds))
    const policies =
      kind === 'service' && this.#chance(0.3) ? this.#world.records('servicePolicy') : []
    const [policy] = policies
    const hasRoles = this.#chance(0.25)
    const parameters = {
      sort: this.#chance(0.3) ? this.#sort(kind) : [],
      limit: this.#chance(0.7) ? pick(this.#random, [-2, -1, -1, 0, 1, 3, 20, 600]) : null,
      offset: this.#chance(0.4) ? pick(this.#random, [-1, 0, 1, 5, 30, 1e6]) : null,
      roleFilter: hasRoles ? this.#roleFilter(kind) : [],
      roleSemantic: pick(this.#random, [null, 'AllOf', 'anyof', 'AnyOf']),
    }
    const row = this.#chance(0.93) ? this.row(kind, 4) : null
    const within = policy === undefined ? null : meantBy(policy, 'service', this.#world)
    return { kind, row, ...this.#paging(kind, 0.2), parameters, within }
  }

  #roleFilter(kind: string): string[] {
    const ids = this.#world.records(kind).slice(0, 3)
    const known = ['#a', '#b', '#all', '#nobody', '@nobody', ...ids.map(({ id }) => `@${id}`)]
    return Array.from({ length: this.#random.integer(1, 3) }, () => pick(this.#random, known))
  }

  #paging(kind: string, share: number): Paging {
    return {
      sort: this.#chance(share) ? this.#sort(kind) : [],
      skip: this.#chance(share) ? this.#random.integer(0, 4) : null,
      limit: this.#chance(share) ? pick(this.#random, ['none', 1, 2, 50]) : null,
    }
  }

  #sort(kind: string): Paging['sort'] {
    const sortable = Object.entries(kinds[kind] ?? {}).filter(([name, one]) =>
      isSortable(name, one),
    )
    return Array.from({ length: this.#random.integer(1, 3) }, () => ({
      symbol: this.#chance(0.3) ? 'id' : (pick(this.#random, sortable)[0] ?? 'id'),
      direction: pick(this.#random, ['', 'asc', 'desc']),
    }))
  }

  row(kind: string, depth: number): Row {
    const first = this.#term(kind, depth)
    // The operand of a `not` includes the rest of the expression.
    const isEnd = first.is === 'not' || depth === 0 || this.#chance(0.5)
    if (isEnd) return { first, joint: null, rest: null }
    return { first, joint: this.#chance(0.5) ? 'and' : 'or', rest: this.row(kind, depth - 1) }
  }

  #term(kind: string, depth: number): Term {
    const chance = this.#random.next()
    if (depth > 0 && chance < 0.12) return { is: 'group', row: this.row(kind, depth - 1) }
    if (depth > 0 && chance < 0.2) return { is: 'not', row: this.row(kind, depth - 1) }
    if (chance < 0.24) return { is: 'constant', value: this.#chance(0.5) }
    const [symbol, meaning] = pick(this.#random, Object.entries(kinds[kind] ?? {}))
    if (meaning.type === 'set') return this.#ofSet(kind, symbol, meaning, depth)
    if ((meaning.type === 'bool' || meaning.type === 'any') && this.#chance(0.3)) {
      return { is: 'flag', symbol }
    }
    return this.#operation(kind, { of: 'one', symbol }, meaning)
  }

  #ofSet(kind: string, symbol: string, meaning: Meaning, depth: number): Term {
    const chance = this.#random.next()
    const set = this.#setExpr(symbol, meaning, depth)
    if (chance < 0.2) return { is: 'empty', set }
    if (chance < 0.45) {
      const number = (): Value => ({ type: 'number', value: this.#random.integer(0, 4) })
      const lhs: Lhs = { of: 'count', set }
      return this.#numeric(lhs, number)
    }
    return this.#operation(kind, { of: this.#chance(0.6) ? 'anyOf' : 'allOf', symbol }, meaning)
  }

  #setExpr(symbol: string, { leadsTo }: Meaning, depth: number): SetExpr {
    if (leadsTo === undefined || depth < 2 || this.#chance(0.3)) return { symbol, query: null }
    const row = this.#chance(0.95) ? this.row(leadsTo, depth - 2) : null
    const paging = this.#paging(leadsTo, 0.15)
    const query: SubQuery = { row, ...(row === null ? { ...paging, limit: 'none' } : paging) }
    return { symbol, query }
  }

  #numeric(lhs: Lhs, number: () => Value): Term {
    const negated = this.#chance(0.3)
    switch (this.#random.integer(0, 3)) {
      case 0:
        return { is: 'between', lhs, negated, low: number(), high: number() }
      case 1:
        return { is: 'in', lhs, negated, values: [number(), number()] }
      case 2:
        return { is: 'contains', lhs, negated, value: number() }
      default:
        return { is: 'compare', lhs, operator: pick(this.#random, orders), value: number() }
    }
  }

  #operation(kind: string, lhs: Lhs & { readonly symbol: string }, meaning: Meaning): Term {
    const isEquality = this.#chance(0.5)
    const operator = isEquality
      ? pick(this.#random, ['=', '!='] as const)
      : pick(this.#random, orders)
    const equal = this.#chance(0.5) ? ('=' as const) : ('!=' as const)
    const isAny = meaning.type === 'any'
    if (meaning.type !== 'set' && meaning.type !== 'bool' && this.#chance(0.12)) {
      return { is: 'compare', lhs, operator: equal, value: { type: 'null', value: null } }
    }
    if (meaning.type === 'bool' || (isAny && this.#chance(0.2))) {
      const value = { type: 'bool', value: this.#chance(0.5) } as const
      return { is: 'compare', lhs, operator: equal, value }
    }
    const negated = this.#chance(0.3)
    if (meaning.type === 'time' || (isAny && this.#chance(0.1))) {
      const value = (): Value => ({ type: 'time', value: startMs + this.#random.integer(0, 39) })
      const chance = this.#random.next()
      if (chance < 0.3) return { is: 'between', lhs, negated, low: value(), high: value() }
      if (chance < 0.5) return { is: 'in', lhs, negated, values: [value(), value(), value()] }
      return { is: 'compare', lhs, operator, value: value() }
    }
    if (meaning.type === 'number' || (isAny && this.#chance(0.5))) {
      return this.#numeric(lhs, () => ({
        type: 'number',
        value: pick(this.#random, [0, 1, 2, 2.5, -3, 7, 10]),
      }))
    }
    const value = (): Value => ({ type: 'text', value: this.#text(kind, lhs.symbol, meaning) })
    const chance = this.#random.next()
    if (chance < 0.2) return { is: 'in', lhs, negated, values: [value(), value(), value()] }
    if (chance < 0.3) return { is: 'contains', lhs, negated, value: value() }
    if (chance < 0.4) return { is: 'icontains', lhs, negated, value: value() }
    return { is: 'compare', lhs, operator, value: value() }
  }

  /** A text that some record contains, a part of such a text, or any text. */
  #text(kind: string, symbol: string, meaning: Meaning): string {
    const records = this.#world.records(kind)
    if (records.length === 0 || this.#chance(0.25)) return word(this.#random, 2)
    const own = kinds[kind]?.[symbol]?.of(pick(this.#random, records), this.#world)
    const text = meaning.type === 'set' ? (own as readonly string[])[0] : own
    if (typeof text !== 'string') return word(this.#random, 2)
    if (this.#chance(0.6)) return text
    return Array.from(text).slice(0, this.#random.integer(0, 2)).join('')
  }
}
