const RFC_3339 =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]((?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?)([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$/

/** First and last time whose year has four digits. */
const FIRST_MS = Date.parse('0000-01-01T00:00:00.000Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * UTC ms of an RFC 3339 time; null for any other string. A leap second is rejected, as Go programs
 * do, because POSIX time has no leap seconds.
 */
export function dateTimeMs(text: string): number | null {
  const [, year = '', month = '', day = '', time = '', zone = ''] = RFC_3339.exec(text) ?? []
  const date = `${year}-${month}-${day}`
  if (!isDay(date)) return null
  const ms = Date.parse(`${date}T${time}${zone.toUpperCase()}`)
  return ms >= FIRST_MS && ms <= LAST_MS ? ms : null
}

/**
 * Whether the month has this day. Needed because `Date` turns, for example, February 30 into a day
 * in March.
 */
function isDay(date: string): boolean {
  const ms = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(date)
}
