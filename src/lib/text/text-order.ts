/**
 * Largest step of the search backward from the end of a list; from there, the search is binary.
 */
const NEAR_END_STEP_MAX = 8
const HIGH_UNIT = /[\ud800-\uffff]/

/**
 * Rank of a UTF-16 code unit in code point order. Surrogates encode characters above U+FFFF, but
 * their numbers are smaller than those of U+E000 to U+FFFF.
 */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/**
 * Whether `<`, which compares UTF-16 code units, gives the order of the UTF-8 bytes between this
 * string and any other string.
 */
export function comparesByCodeUnits(text: string): boolean {
  return !HIGH_UNIT.test(text)
}

/**
 * Compares strings by their UTF-8 bytes: negative, 0 or positive if `a` is before, equal to or
 * after `b`. `<` compares UTF-16 units, which gives another order for characters above U+FFFF and
 * characters from U+E000 on.
 */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  if (comparesByCodeUnits(a) || comparesByCodeUnits(b)) return a < b ? -1 : 1
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
  // If possible, sorts without a comparison function: `sort` then compares UTF-16 units and is
  // several times faster.
  return texts.every(comparesByCodeUnits) ? texts.sort() : texts.sort(compareText)
}

/**
 * First position in a sorted list at which the string is not less than `text`.
 * @param isPlain result of `comparesByCodeUnits(text)`.
 */
export function lowerBound(sorted: readonly string[], text: string, isPlain: boolean): number {
  let low = 0
  let high = sorted.length
  // The search starts at the end: ids usually arrive sorted (by creation or by store order), and
  // the last strings are more likely to be in the CPU cache.
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
 * Index of the chunk, in a sorted list of sorted chunks, that contains the string or in which it
 * would be inserted; 0 if there is no chunk.
 * @param isPlain result of `comparesByCodeUnits(text)`.
 */
export function findChunkIndex(
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
