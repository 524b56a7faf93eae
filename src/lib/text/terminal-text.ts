/**
 * Characters that a terminal interprets instead of showing: C0, DEL and C1 controls, bidirectional
 * controls, and Unicode line separators.
 */
const UNPRINTABLE =
  '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069'
/** The subset of `UNPRINTABLE` that JSON and YAML neither escape nor use between values. */
const UNESCAPED = '\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069'

const one = new RegExp(`[${UNPRINTABLE}]`)
const runs = new RegExp(`[${UNPRINTABLE}]+`, 'g')
const runsWithinLines = new RegExp(`(?![\\t\\n])[${UNPRINTABLE}]`, 'g')
const unescaped = new RegExp(`[${UNESCAPED}]`, 'g')
const WHITE = /^[\t\n\v\f\r\u0085\u2028\u2029]+$/

/**
 * The first character that a terminal would interpret, in the form `U+001B`; null when there is
 * none.
 */
export function firstUnprintableCharacter(text: string): string | null {
  const found = one.exec(text)
  return found === null ? null : `U+${hexOf(found[0]).toUpperCase()}`
}

/**
 * Turns untrusted text into one safe line: each run of line breaks and tabs becomes a space, and
 * each run that contains another control character becomes `?`.
 */
export function printableLine(text: string, charactersMax = Infinity): string {
  const line = text.replace(runs, (run) => (WHITE.test(run) ? ' ' : '?'))
  return line.length > charactersMax ? line.slice(0, charactersMax) : line
}

/**
 * Makes untrusted multi-line text safe: only line feeds and tabs stay, other control characters are
 * replaced.
 */
export function printableText(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(runsWithinLines, '?')
}

/** A copy of a JSON value in which {@link printableLine} was applied to every string. */
export function printableValue<T>(value: T): T {
  if (typeof value === 'string') return printableLine(value) as T
  if (Array.isArray(value)) return (value as unknown[]).map(printableValue) as T
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [
    printableLine(name),
    printableValue(member as unknown),
  ])
  return Object.fromEntries(members) as T
}

/**
 * Escapes characters that a terminal interprets, in JSON or in YAML whose scalars with such
 * characters are double-quoted. The result still parses to the same value.
 */
export function escapeUnprintable(text: string): string {
  return text.replace(unescaped, (character) => `\\u${hexOf(character)}`)
}

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(4, '0')
}
