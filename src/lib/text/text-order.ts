/** Longest step of the search from the end of a list; the search is binary from there. */
const NEAR_END_STEP_MAX = 8
const HIGH_UNIT = /[\ud800-\uffff]/

/** Surrogates encode characters above U+FFFF, but are smaller numbers than U+E000 to U+FFFF. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** Whether `<` compares this text correctly with any other text. */
export function isPlainText(text: string): boolean {
  return !HIGH_UNIT.test(text)
}

/**
 * Compares texts by their UTF-8 bytes: negative, 0 or positive if `a` is before, equal to or after
 * `b`. `<` compares UTF-16 units, which differs between characters above U+FFFF and those from
 * U+E000 on.
 */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  if (isPlainText(a) || isPlainText(b)) return a < b ? -1 : 1
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i += 1) {
    const left = a.charCodeAt(i)
    const right = b.charCodeAt(i)
    if (left !== right) return rank(left) - rank(right)
  }
  return a.length - b.length
}

/** Sorts in place, by {@link compareText}. */
export function sortTexts(texts: string[]): string[] {
  // Without a comparison function, `sort` compares UTF-16 units and is several times faster.
  return texts.every(isPlainText) ? texts.sort() : texts.sort(compareText)
}

/**
 * First position in a sorted list whose text is not below `text`.
 * @param isPlain result of `isPlainText(text)`.
 */
export function lowerBound(sorted: readonly string[], text: string, isPlain: boolean): number {
  let low = 0
  let high = sorted.length
  // Ids mostly arrive in order, of their creation or of the store. So the last few are compared
  // first: older texts are seldom in the processor's cache.
  let step = 1
  while (low < high) {
    const isNearEnd = step <= NEAR_END_STEP_MAX && step <= high - low
    const at = isNearEnd ? high - step : (low + high) >>> 1
    const other = sorted[at] ?? ''
    if (isPlain ? other < text : compareText(other, text) < 0) {
      low = at + 1
      step = Infinity
    } else {
      high = at
      step *= 2
    }
  }
  return low
}

/**
 * Index of the chunk that holds or would hold a text, in a sorted list of sorted chunks; 0 if there
 * is none.
 * @param isPlain result of `isPlainText(text)`.
 */
export function chunkIndex(
  chunks: readonly (readonly string[])[],
  text: string,
  isPlain: boolean,
): number {
  let low = 0
  let high = Math.max(0, chunks.length - 1)
  const last = chunks[high]?.[0]
  if (last !== undefined && (isPlain ? last <= text : compareText(last, text) <= 0)) low = high
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    const first = chunks[middle]?.[0] ?? ''
    if (isPlain ? first <= text : compareText(first, text) <= 0) low = middle
    else high = middle - 1
  }
  return low
}
