// Parts from which the texts of the console are made.

export const count = (amount: number, one: string, many: string): string =>
  `${amount.toLocaleString('en')} ${amount === 1 ? one : many}`

export const upperFirst = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)

/** Lowercases a title within a sentence; a title like `JWT signers` keeps its capitals. */
export const within = (text: string): string =>
  /^[A-Z][a-z]/.test(text) ? text.slice(0, 1).toLowerCase() + text.slice(1) : text

export const list = new Intl.ListFormat('en', { type: 'conjunction' })

/** Latency that a link reports until its routers have measured it. */
export const UNMEASURED_MS = 65_000

/** A latency, in seconds if it is one second or more. */
export const latencyText = (ms: number): string => {
  if (ms >= UNMEASURED_MS) return 'not measured'
  const [amount, unit] = ms < 1000 ? [ms, 'ms'] : [ms / 1000, 's']
  return `${amount.toLocaleString('en', { maximumFractionDigits: amount < 10 ? 1 : 0 })} ${unit}`
}
