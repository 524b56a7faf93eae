const SURROGATE_MIN = 0xd800
const SURROGATE_MAX = 0xdfff

/** Surrogates stand for characters above all others, but are smaller numbers than U+E000 to U+FFFF. */
function rank(unit: number): number {
  return unit >= SURROGATE_MIN && unit <= SURROGATE_MAX ? unit + 0x10000 : unit
}

/**
 * The order of texts by their UTF-8 bytes: negative, 0 or positive as `a` stands before, at or after `b`. `<` goes by
 * UTF-16 units, which differs where characters above U+FFFF meet those from U+E000 on.
 */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i += 1) {
    const left = a.charCodeAt(i)
    const right = b.charCodeAt(i)
    if (left !== right) return rank(left) - rank(right)
  }
  return a.length - b.length
}
