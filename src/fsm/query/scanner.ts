import { Problem } from '../../lib/problems.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'
import type { Literal } from './ast.ts'

/**
 * Limits for a query: its length, its nesting, and the cost of one response. `QueryCostCounter`
 * explains the cost; `workMax` takes about a second of processor time. Callers who are not
 * administrators get `workOfOthersMax`, about 25 ms, and `charactersOfOthersMax`, which limits the
 * cost of parsing.
 */
export const queryLimits = {
  /**
   * Maximum characters of an administrator's filter; a longer one fails with 400 INVALID_FILTER.
   */
  charactersMax: 16_384,
  /** Maximum characters of another caller's filter; a longer one fails with 400 INVALID_FILTER. */
  charactersOfOthersMax: 4096,
  /**
   * Maximum nesting of parentheses, `not` and subqueries in one filter; deeper nesting fails with
   * 400 INVALID_FILTER.
   */
  depthMax: 64,
  /**
   * Maximum terms of one filter, and maximum fields in its `sort by`; more fail with 400
   * INVALID_FILTER.
   */
  termsMax: 1000,
  /** Maximum values of one list in a filter; more fail with 400 INVALID_FILTER. */
  arrayMax: 2000,
  /** Maximum subqueries in one filter; more fail with 400 INVALID_FILTER. */
  subQueriesMax: 16,
  /**
   * Maximum cost of an administrator's query: the number of terms evaluated, plus the number of
   * related records visited, plus one for each 32 characters that a `contains` test searches; a
   * higher cost fails with 400 INVALID_FILTER.
   */
  workMax: 20_000_000,
  /**
   * Maximum cost of another caller's query, in the same units as `workMax`; a higher cost fails
   * with 400 INVALID_FILTER.
   */
  workOfOthersMax: 500_000,
} as const

const BLANK = /[ \t\r\n]/
const WORD = /[A-Za-z][A-Za-z_]*(?:\.[A-Za-z][A-Za-z_-]*)*/y
const QUOTED = /'[A-Za-z][A-Za-z_]*(?:\.[A-Za-z][A-Za-z_-]*)*'/y
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const DATETIME =
  /datetime\([ \t\r\n]*([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]((?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})[ \t\r\n]*\)/y
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

/**
 * The error for an invalid filter.
 * @param detail the fault, with its position for a syntax error, as a sentence without a period.
 */
export function invalidFilterProblem(detail: string): Problem {
  return new Problem('INVALID_FILTER', { detail })
}

/** Reads the tokens of a query. Blanks are significant, so the parser reads them explicitly. */
export class QueryScanner {
  readonly #text: string
  at = 0

  /** @throws {Problem} INVALID_FILTER when the text is too long. */
  constructor(text: string, charactersMax: number = queryLimits.charactersMax) {
    if (text.length > charactersMax) {
      throw invalidFilterProblem(`the filter is longer than ${charactersMax} characters`)
    }
    this.#text = text
  }

  get isAtEnd(): boolean {
    return this.at >= this.#text.length
  }

  /**
   * Syntax error at the current position. Lines are counted from 1; columns are counted from 0, in
   * characters rather than UTF-16 units.
   */
  unexpected(): Problem {
    const before = this.#text.slice(0, this.at)
    const line = before.split('\n').length
    const column = Array.from(before.slice(before.lastIndexOf('\n') + 1)).length
    const character = this.#text.codePointAt(this.at)
    const symbol =
      character === undefined ? '<EOF>' : (this.peekName() ?? String.fromCodePoint(character))
    const lineText = this.#text.split('\n')[line - 1] ?? ''
    const place = `at line: ${line} column: ${column}. line: ${lineText.slice(0, 256)}`
    return invalidFilterProblem(`Unexpected symbol: "${symbol.slice(0, 64)}" ${place}`)
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at
    return pattern.exec(this.#text)?.[0] ?? null
  }

  /**
   * Skips blanks.
   * @returns the number of skipped blanks.
   */
  blanks(): number {
    const start = this.at
    while (!this.isAtEnd && BLANK.test(this.#text.charAt(this.at))) this.at += 1
    return this.at - start
  }

  requireBlanks(): void {
    if (this.blanks() === 0) throw this.unexpected()
  }

  peek(text: string): boolean {
    return this.#text.startsWith(text, this.at)
  }

  take(text: string): boolean {
    if (!this.peek(text)) return false
    this.at += text.length
    return true
  }

  require(text: string): void {
    if (!this.take(text)) throw this.unexpected()
  }

  /**
   * The identifier or keyword at the current position, spelled as in the text; null if there is
   * none.
   */
  peekWord(): string | null {
    return this.#match(WORD)
  }

  /**
   * A word at the current position, or an identifier in single quotes; null if there is neither. A
   * quoted identifier is always a name, even if no symbol has that name.
   */
  peekName(): string | null {
    return this.#match(WORD) ?? this.#match(QUOTED)
  }

  /** Consumes the keyword, in upper or lower case, if it is the whole next word. */
  takeKeyword(keyword: string): boolean {
    const word = this.peekWord()
    if (word?.toLowerCase() !== keyword.toLowerCase()) return false
    this.at += word.length
    return true
  }

  requireKeyword(keyword: string): void {
    if (!this.takeKeyword(keyword)) throw this.unexpected()
  }

  /** Consumes blanks and then one of the keywords; consumes nothing if no keyword follows. */
  takeBlankKeyword(...keywords: readonly string[]): string | null {
    const start = this.at
    if (this.blanks() > 0) {
      for (const keyword of keywords) if (this.takeKeyword(keyword)) return keyword
    }
    this.at = start
    return null
  }

  takeNumber(): Literal | null {
    const text = this.#match(NUMBER)
    if (text === null) return null
    this.at += text.length
    return { type: 'number', value: Number(text) }
  }

  takeDatetime(): Literal | null {
    DATETIME.lastIndex = this.at
    const match = DATETIME.exec(this.#text)
    if (match === null) return null
    const [whole, day = '', time = '', fraction = '', zone = ''] = match
    const wholeMs = dateTimeMs(`${day}T${time}${fraction.slice(0, 4)}${zone}`)
    if (wholeMs === null) throw this.unexpected()
    this.at += whole.length
    // Stored times are whole milliseconds, so it suffices to compare a more precise time as a value
    // between two adjacent milliseconds.
    const isFiner = /[1-9]/.test(fraction.slice(4))
    return { type: 'datetime', value: isFiner ? wholeMs + 0.5 : wholeMs }
  }

  takeString(): Literal | null {
    if (!this.peek('"')) return null
    let value = ''
    let at = this.at + 1
    for (;;) {
      const character = this.#text.charAt(at)
      if (character === '"') break
      if (character === '' || character < ' ') {
        this.at = at
        throw this.unexpected()
      }
      if (character !== '\\') {
        value += character
        at += 1
        continue
      }
      const escaped = ESCAPES[this.#text.charAt(at + 1)]
      if (escaped === undefined) {
        this.at = at
        throw this.unexpected()
      }
      value += escaped
      at += 2
    }
    this.at = at + 1
    return { type: 'string', value }
  }
}
