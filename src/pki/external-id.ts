import { createTextSearch } from '../lib/text/text-search.ts'

/** Rule for finding the external id in a client's certificate. A CA has at most one rule. */
export interface ExternalIdRule {
  /**
   * Index, from 0, of the id among all matches or, with the parser `SPLIT`, among the parts of all
   * matches.
   */
  readonly index: number
  readonly location: 'COMMON_NAME' | 'SAN_URI' | 'SAN_EMAIL'
  readonly matcher: 'ALL' | 'PREFIX' | 'SUFFIX' | 'SCHEME'
  readonly matcherCriteria: string
  readonly parser: 'NONE' | 'SPLIT'
  readonly parserCriteria: string
}

/** The names in a certificate that may contain the external id. */
interface ExternalIdNames {
  readonly commonNames: readonly string[]
  readonly uris: readonly string[]
  readonly emails: readonly string[]
}

export type ExternalId =
  | { readonly ok: true; readonly externalId: string }
  /** `reason` completes a sentence about the certificate. */
  | { readonly ok: false; readonly reason: string }

/**
 * Finds the external id in a certificate, which must chain to the CA with this rule. A rule
 * contains no regular expressions, so the time is linear in the length of the names.
 */
export function findExternalId(rule: ExternalIdRule, certificate: ExternalIdNames): ExternalId {
  const matched = namesAt(rule, certificate).flatMap((name) => matchOf(rule, name))
  if (matched.length === 0) return none('has no name that the claim of its CA matches')
  const found = idAt(rule, matched)
  if (found === null) {
    return none(`has fewer than ${rule.index + 1} ids by the claim of its CA`)
  }
  if (found === '') return none('has an empty id by the claim of its CA')
  return { ok: true, externalId: found }
}

function none(reason: string): ExternalId {
  return { ok: false, reason }
}

function namesAt(
  { location }: ExternalIdRule,
  { commonNames, uris, emails }: ExternalIdNames,
): readonly string[] {
  switch (location) {
    case 'COMMON_NAME':
      return commonNames
    case 'SAN_URI':
      return uris
    case 'SAN_EMAIL':
      return emails
  }
}

/**
 * @returns the name as the only element, without the prefix or suffix if the rule requires one; an
 * empty list if the name does not match.
 */
function matchOf({ matcher, matcherCriteria, location }: ExternalIdRule, name: string): string[] {
  const isUri = location === 'SAN_URI'
  switch (matcher) {
    case 'ALL':
      return [name]
    case 'PREFIX':
      if (isUri || !name.startsWith(matcherCriteria)) return []
      return [name.slice(matcherCriteria.length)]
    case 'SUFFIX':
      if (isUri || !name.endsWith(matcherCriteria)) return []
      return [name.slice(0, name.length - matcherCriteria.length)]
    case 'SCHEME':
      return isUri && schemeOf(name) === matcherCriteria.toLowerCase() ? [name] : []
  }
}

/** The scheme of a URI in lowercase, because schemes are case-insensitive (RFC 3986, 3.1). */
function schemeOf(uri: string): string | null {
  const colon = uri.indexOf(':')
  return colon < 0 ? null : uri.slice(0, colon).toLowerCase()
}

/**
 * Finds the part at an index. Builds no list of all parts, because there could be as many as the
 * name has characters.
 */
function idAt(
  { parser, parserCriteria, index }: ExternalIdRule,
  values: readonly string[],
): string | null {
  if (parser === 'NONE') return values[index] ?? null
  // Refuses an empty separator, which is invalid and would split a name into single letters.
  if (parserCriteria === '') return null
  const indexOfSeparator = createTextSearch(parserCriteria)
  let left = index
  for (const value of values) {
    let from = 0
    for (;;) {
      const to = indexOfSeparator(value, from)
      if (left === 0) return to < 0 ? value.slice(from) : value.slice(from, to)
      left -= 1
      if (to < 0) break
      from = to + parserCriteria.length
    }
  }
  return null
}
