const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB', 'ZB']

/** Formats a number of bytes with at most three digits and a unit, such as `1.23 MB`. */
export function formatByteCount(bytes: number): string {
  // Rounds before it chooses the unit: 999,999 bytes are 1 MB, not 1,000 kB.
  const rounded = Number(bytes.toPrecision(3))
  const step = rounded < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(rounded) / 3))
  const number = (rounded / 1000 ** step).toLocaleString('en', {
    maximumFractionDigits: step === 0 ? 0 : 2,
  })
  return `${number} ${UNITS[step] ?? ''}`
}
