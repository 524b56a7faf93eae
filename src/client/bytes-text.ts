const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB', 'ZB']

/** With at most three digits, such as `1.23 MB`. */
export function bytesText(bytes: number): string {
  const step = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3))
  const amount = bytes / 1000 ** step
  const digits = step === 0 || amount >= 100 ? 0 : amount >= 10 ? 1 : 2
  const number = amount.toLocaleString('en', { maximumFractionDigits: digits })
  return `${number} ${UNITS[step] ?? ''}`
}
