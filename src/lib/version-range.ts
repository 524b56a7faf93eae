const NUMBER = '(?:0|[1-9][0-9]{0,14})'
const SUFFIX = '(?:-[0-9A-Za-z.-]{1,64})?(?:\\+[0-9A-Za-z.-]{1,64})?'
const FULL = `${NUMBER}\\.${NUMBER}\\.${NUMBER}${SUFFIX}`
/** `1.x`, `1.x.x`, `1.2.x`. */
const WILD = `${NUMBER}\\.(?:x(?:\\.x)?|${NUMBER}\\.x)`
const COMPARATOR = new RegExp(`^(?:>=|<=|==|!=|>|<|=|!)?(?:${FULL}|${WILD})$`)

/**
 * Whether a text is a range of versions as posture checks have them: comparators separated by blanks must all hold, and one
 * of the groups separated by `||`. `>=10.0.0 <11.0.0 || 12.x`.
 */
export function isVersionRange(text: string): boolean {
  return text.split('||').every((group) => {
    const comparators = group.replace(/([<>=!])\s+/g, '$1').split(/\s+/)
    const said = comparators.filter((comparator) => comparator !== '')
    return said.length > 0 && said.every((comparator) => COMPARATOR.test(comparator))
  })
}
