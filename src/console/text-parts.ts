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
