const WORD = /[^ ]+/g
const CIRCUIT_ID_CHARACTERS_MAX = 128

/**
 * Yields each word of a string once. It builds no list, and yields nothing for a string of spaces.
 */
export function* iterateDistinctWords(text: string): Generator<string, void> {
  const seen = new Set<string>()
  for (const [word] of text.matchAll(WORD)) {
    if (seen.has(word)) continue
    seen.add(word)
    yield word
  }
}

/**
 * Whether a string from a router or another controller can be a circuit ID, or the address of a
 * circuit endpoint.
 */
export function isCircuitId(id: string): boolean {
  return id !== '' && id.length <= CIRCUIT_ID_CHARACTERS_MAX
}
