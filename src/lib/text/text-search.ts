/**
 * Up to this length, the built-in search is always fast: it needs at most this many comparisons per
 * character.
 */
const shortCharactersMax = 16

/** Finds a pattern in a string, starting at `from`; -1 if it is not found. */
type TextSearch = (text: string, from: number) => number

/**
 * Creates a search that takes linear time for any pattern. With some long patterns, the built-in
 * search takes time proportional to the product of both lengths, and an attacker may choose both
 * pattern and text.
 */
export function createTextSearch(pattern: string): TextSearch {
  // @guard costly-texts--search
  if (pattern.length <= shortCharactersMax) return (text, from) => text.indexOf(pattern, from)
  return linearSearch(pattern)
}

/** Creates a search with the Knuth-Morris-Pratt algorithm. */
function linearSearch(pattern: string): TextSearch {
  // For each matched length: the longest proper prefix that is also a suffix.
  const borders = [0]
  const grow = (length: number, code: number): number => {
    let fits = length
    while (fits > 0 && pattern.charCodeAt(fits) !== code) fits = borders[fits - 1] ?? 0
    return pattern.charCodeAt(fits) === code ? fits + 1 : fits
  }
  for (let at = 1; at < pattern.length; at += 1) {
    borders.push(grow(borders[at - 1] ?? 0, pattern.charCodeAt(at)))
  }
  return (text, from) => {
    let fits = 0
    for (let at = from; at < text.length; at += 1) {
      fits = grow(fits, text.charCodeAt(at))
      if (fits === pattern.length) return at - fits + 1
    }
    return -1
  }
}
