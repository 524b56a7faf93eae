const WORD = /[^ ]+/g
const CIRCUIT_ID_CHARACTERS_MAX = 128

/** Each once, one after the other: spaces alone give nothing, and no list is made of them. */
export function* wordsIn(text: string): Generator<string, void> {
  const seen = new Set<string>()
  for (const [word] of text.matchAll(WORD)) {
    if (seen.has(word)) continue
    seen.add(word)
    yield word
  }
}

/** Whatever a router names so goes back to it. */
export function isCircuitId(id: string): boolean {
  return id !== '' && id.length <= CIRCUIT_ID_CHARACTERS_MAX
}
