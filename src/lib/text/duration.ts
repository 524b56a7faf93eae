const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}
const DURATION =
  /^[+-]?(?:0|(?:(?:[0-9]{1,12}(?:\.[0-9]{0,12})?|\.[0-9]{1,12})(?:ns|us|µs|μs|ms|s|m|h)){1,8})$/
const PART = /([0-9]*\.?[0-9]*)(ns|us|µs|μs|ms|s|m|h)/g

/**
 * Parses a duration in Go's notation, such as `1h30m` or `1.5s`, into ms; null when the string is
 * invalid.
 */
export function parseDuration(text: string): number | null {
  if (!DURATION.test(text)) return null
  let ms = 0
  for (const [, number = '0', unit = 'ms'] of text.matchAll(PART)) {
    ms += Number(number) * (unitMs[unit] ?? 0)
  }
  return text.startsWith('-') ? -ms : ms
}
