/**
 * Up to here the search of the language is quick whatever it is given: a text costs at most so many
 * looks a character.
 */
const shortCharactersMax = 16

/** Finds where a pattern stands in a text, from a place on; -1: nowhere. */
export type TextSearch = (text: string, from: number) => number

/**
 * A search whose time is in proportion to the text, whatever the pattern: for some long ones that
 * of the language takes time in proportion to the product of both lengths, and whoever writes one
 * of them may have chosen it to go with the other.
 */
export function searcherFor(pattern: string): TextSearch {
  // @guard costly-texts--search
  if (pattern.length <= shortCharactersMax) return (text, from) => text.indexOf(pattern, from)
  return linearSearch(pattern)
}

/** That of Knuth, Morris and Pratt. */
function linearSearch(pattern: string): TextSearch {
  // For each length of a part that fits: how much of it fits again at its own end.
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
