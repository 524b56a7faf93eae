import type { Random } from '../../../src/lib/random.ts'
import type { Lhs, Paging, Row, SetExpr, SubQuery, Term, Value } from './language.ts'

/**
 * Writes a filter as a person might: blanks, the case of keywords, escapes and time offsets are
 * random.
 */
export class Renderer {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  #chance(share: number): boolean {
    return this.#random.next() < share
  }

  /** One or more blanks. */
  #gap(): string {
    return this.#chance(0.9)
      ? ' '
      : (['\t', '\n', '  ', '\r\n '][this.#random.integer(0, 3)] ?? ' ')
  }

  /** Zero or more blanks. */
  #room(): string {
    return this.#chance(0.3) ? this.#gap() : ''
  }

  #word(keyword: string): string {
    if (this.#chance(0.8)) return keyword
    return Array.from(keyword, (letter) =>
      this.#chance(0.5) ? letter.toUpperCase() : letter.toLowerCase(),
    ).join('')
  }

  query(query: SubQuery): string {
    const parts = [...(query.row === null ? [] : [this.row(query.row)]), ...this.#paging(query)]
    return this.#room() + parts.join(this.#gap()) + this.#room()
  }

  #paging({ sort, skip, limit }: Paging): string[] {
    const parts: string[] = []
    if (sort.length > 0) {
      parts.push([this.#word('sort'), this.#word('by'), this.sortFields(sort)].join(this.#gap()))
    }
    if (skip !== null) parts.push(this.#word('skip') + this.#gap() + String(skip))
    if (limit !== null) {
      const value = limit === 'none' ? this.#word('none') : String(limit)
      parts.push(this.#word('limit') + this.#gap() + value)
    }
    return parts
  }

  sortFields(sort: Paging['sort']): string {
    return sort
      .map(({ symbol, direction }) =>
        direction === '' ? symbol : symbol + this.#gap() + this.#word(direction),
      )
      .join(`${this.#room()},${this.#room()}`)
  }

  row({ first, joint, rest }: Row): string {
    const head = this.#term(first)
    if (joint === null || rest === null) return head
    return head + this.#gap() + this.#word(joint) + this.#gap() + this.row(rest)
  }

  #group(text: string): string {
    return `(${this.#room()}${text}${this.#room()})`
  }

  #term(term: Term): string {
    switch (term.is) {
      case 'constant':
        return this.#word(String(term.value))
      case 'flag':
        return term.symbol
      case 'empty':
        return this.#word('isEmpty') + this.#group(this.#set(term.set))
      case 'group':
        return this.#group(this.row(term.row))
      case 'not':
        return this.#word('not') + this.#gap() + this.row(term.row)
      case 'compare':
        return (
          this.#lhs(term.lhs) + this.#room() + term.operator + this.#room() + this.value(term.value)
        )
      case 'in': {
        const values = term.values.map((value) => this.value(value))
        const list = `[${this.#room()}${values.join(`${this.#room()},${this.#room()}`)}${this.#room()}]`
        // Exactly one blank.
        const word = (term.negated ? `${this.#word('not')} ` : '') + this.#word('in')
        return this.#lhs(term.lhs) + this.#gap() + word + this.#gap() + list
      }
      case 'between': {
        const bounds = [this.value(term.low), this.#word('and'), this.value(term.high)]
        const word = this.#negated(term.negated) + this.#word('between')
        return [this.#lhs(term.lhs), word, ...bounds].join(this.#gap())
      }
      case 'contains':
      case 'icontains': {
        const word = this.#negated(term.negated) + this.#word(term.is)
        const apart = term.lhs.of === 'one' ? this.#gap() : this.#room()
        return this.#lhs(term.lhs) + apart + word + this.#gap() + this.value(term.value)
      }
    }
  }

  #negated(isNegated: boolean): string {
    return isNegated ? this.#word('not') + this.#gap() : ''
  }

  #lhs(lhs: Lhs): string {
    if (lhs.of === 'one') return lhs.symbol
    if (lhs.of === 'count') return this.#word('count') + this.#group(this.#set(lhs.set))
    return this.#word(lhs.of) + this.#group(lhs.symbol)
  }

  #set({ symbol, query }: SetExpr): string {
    if (query === null) return symbol
    const words = [this.#word('from'), symbol, this.#word('where'), this.query(query)]
    return words.join(this.#gap())
  }

  value(value: Value): string {
    switch (value.type) {
      case 'text':
        return this.#string(value.value)
      case 'number':
        return this.#number(value.value)
      case 'time':
        return this.#time(value.value)
      case 'bool':
      case 'null':
        return this.#word(String(value.value))
    }
  }

  #string(text: string): string {
    const escapes: Readonly<Record<string, string>> = {
      '"': '\\"',
      '\\': '\\\\',
      '\f': '\\f',
      '\n': '\\n',
      '\r': '\\r',
      '\t': '\\t',
    }
    return `"${Array.from(text, (letter) => escapes[letter] ?? letter).join('')}"`
  }

  #number(value: number): string {
    if (!this.#chance(0.2)) return String(value)
    return `${value * 10}${this.#chance(0.5) ? 'e' : 'E'}-1`
  }

  #time(ms: number): string {
    if (this.#chance(0.5))
      return `datetime(${this.#room()}${new Date(ms).toISOString()}${this.#room()})`
    const minutes = this.#random.integer(-14 * 60, 14 * 60)
    const local = new Date(ms + minutes * 60_000).toISOString().replace('Z', '000')
    const two = (value: number): string => String(value).padStart(2, '0')
    const offset = `${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`
    return `datetime(${local}${minutes < 0 ? '-' : '+'}${offset})`
  }
}
