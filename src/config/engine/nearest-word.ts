/**
 * The candidate that is most similar to the word. The number of edits between the word and the
 * candidate must be at most two, and less than half of the word's length.
 * @returns null when no candidate is similar enough.
 */
export function nearestWord(word: string, candidates: readonly string[]): string | null {
  let best: string | null = null
  let bestEdits = Math.min(3, Math.ceil(word.length / 2))
  for (const candidate of candidates) {
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase(), bestEdits)
    if (edits < bestEdits) {
      best = candidate
      bestEdits = edits
    }
  }
  return best
}

/** Levenshtein distance of two words; at most `limit`, even if the words differ more. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return Math.min(limit, row[b.length] ?? limit)
}
