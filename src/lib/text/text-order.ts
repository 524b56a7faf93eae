/** Longest step of the search from the end of a list, which halves from there. */
const NEAR_END_STEP_MAX = 8
const HIGH_UNIT = /[\ud800-\uffff]/

/**
 * Surrogates stand for characters above all others, but are smaller numbers than U+E000 to U+FFFF.
 */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** Against any other text, such a one stands where `<` says. */
export function isPlainText(text: string): boolean {
  return !HIGH_UNIT.test(text)
}

/**
 * The order of texts by their UTF-8 bytes: negative, 0 or positive as `a` stands before, at or
 * after `b`. `<` goes by UTF-16 units, which differs where characters above U+FFFF meet those from
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
  // Without a comparison of its own, `sort` goes by UTF-16 units and takes a fraction of the time.
  return texts.every(isPlainText) ? texts.sort() : texts.sort(compareText)
}

/**
 * First position among sorted texts whose text is not below that one.
 * @param isPlain what `isPlainText` says of the text.
 */
export function lowerBound(sorted: readonly string[], text: string, isPlain: boolean): number {
  let low = 0
  let high = sorted.length
  // Ids mostly come in order, or nearly: by the time they were drawn, or as the store has them. The
  // last few are looked at first, as the text of an older one is seldom in the processor's cache.
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
 * Place of the chunk that holds a text or would hold it, among chunks of sorted texts that are
 * sorted themselves; 0 where there is none.
 * @param isPlain what `isPlainText` says of the text.
 */
export function chunkOf(
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
