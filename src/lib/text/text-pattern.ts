export interface TextPattern {
  matches(text: string): boolean
}

/** Maximum pattern length; a longer pattern is invalid. */
export const patternCharactersMax = 256

/** Characters of regular expressions that are not supported. */
const REFUSED = /[\\[\](){}+?]/

/**
 * Parses the subset of regular expressions that metric filters use: literal text, `.`, `.*`, `*`
 * after any other character (meaning any text, as in a shell), `^`, `$` and `|`; `\.` is a literal
 * dot. Matching takes time proportional to the product of both lengths, whereas a caller's regular
 * expression could take forever.
 * @returns null when the pattern is invalid.
 */
export function parsePattern(text: string): TextPattern | null {
  if (text.length > patternCharactersMax) return null
  const branches: Branch[] = []
  for (const part of text.split('|')) {
    const branch = parseBranch(part)
    if (branch === null) return null
    branches.push(branch)
  }
  return { matches: (given) => branches.some((branch) => isMatch(branch, given)) }
}

type Piece = 'any' | 'one' | { readonly character: string }
type Branch = readonly Piece[]

function parseBranch(text: string): Branch | null {
  const isAtStart = text.startsWith('^')
  const isAtEnd = text.endsWith('$')
  const inner = text.slice(isAtStart ? 1 : 0, isAtEnd ? -1 : undefined).replaceAll('\\.', '\0')
  if (REFUSED.test(inner)) return null
  const pieces: Piece[] = isAtStart ? [] : ['any']
  for (let at = 0; at < inner.length; at += 1) {
    const character = inner[at] ?? ''
    if (character === '.' && inner[at + 1] === '*') {
      pieces.push('any')
      at += 1
    } else if (character === '*') pieces.push('any')
    else if (character === '.') pieces.push('one')
    else pieces.push({ character: character === '\0' ? '.' : character })
  }
  return isAtEnd ? pieces : [...pieces, 'any']
}

/** Backtracks only to the last `any`. That is enough, because patterns have no other repetition. */
function isMatch(pieces: Branch, text: string): boolean {
  let [at, piece, anyPiece, anyAt] = [0, 0, -1, 0]
  while (at < text.length) {
    const wanted = pieces[piece]
    if (wanted === 'any') {
      ;[anyPiece, anyAt] = [piece, at]
      piece += 1
    } else if (wanted === 'one' || (wanted !== undefined && wanted.character === text[at])) {
      piece += 1
      at += 1
    } else if (anyPiece >= 0) {
      anyAt += 1
      ;[piece, at] = [anyPiece + 1, anyAt]
    } else return false
  }
  return pieces.slice(piece).every((left) => left === 'any')
}
