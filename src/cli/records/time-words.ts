import { usageFailure } from '../../controller/command-failure.ts'
import { systemClock } from '../../lib/clock.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'

const unitMs: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 24 * 3_600_000,
  w: 7 * 24 * 3_600_000,
}
const DURATION = /^\+?(?:[0-9]{1,6}[mhdw]){1,4}$/
const PART = /([0-9]+)([mhdw])/g
const expected = 'expected a time such as 2030-01-31T18:00:00Z, or a duration from now such as 7d'

/** The time that is a duration after now, RFC 3339; null if the text is not a duration. */
function timeAfter(text: string): string | null {
  if (!DURATION.test(text)) return null
  let ms = systemClock.nowMs()
  for (const [, number = '', unit = ''] of text.matchAll(PART)) {
    ms += Number(number) * (unitMs[unit] ?? 0)
  }
  // Rounds up to a whole second, which is easier to read and to compare with a file.
  return new Date(Math.ceil(ms / 1000) * 1000).toISOString()
}

/**
 * A time on the command line: RFC 3339, or a duration, which is added to the current time.
 * @throws {CommandFailure} exit 2.
 */
export function parseTimeWord(path: string, word: string): string {
  const after = timeAfter(word)
  if (after !== null) return after
  if (dateTimeMs(word) !== null) return word
  throw usageFailure(`${path}: ${expected}, found ${JSON.stringify(word.slice(0, 40))}`)
}

/**
 * The current time plus a duration.
 * @throws {CommandFailure} exit 2.
 */
export function parseDurationWord(path: string, word: string): string {
  const after = timeAfter(word)
  if (after !== null) return after
  const found = JSON.stringify(word.slice(0, 40))
  throw usageFailure(`${path}: expected a duration such as 7d, 12h or 90m, found ${found}`)
}
