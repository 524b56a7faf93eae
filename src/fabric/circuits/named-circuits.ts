const WORD = /[^ ]+/g
const CIRCUIT_ID_CHARACTERS_MAX = 128

/** Yields each word once; a text of spaces yields nothing, and no list is built. */
export function* splitWords(text: string): Generator<string, void> {
  const seen = new Set<string>()
  for (const [word] of text.matchAll(WORD)) {
    if (seen.has(word)) continue
    seen.add(word)
    yield word
  }
}

/**
 * Whether a text may be a circuit ID. The controller sends such an ID back to the router that sent
 * it.
 */
export function isCircuitId(id: string): boolean {
  return id !== '' && id.length <= CIRCUIT_ID_CHARACTERS_MAX
}
