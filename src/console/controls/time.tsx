import { texts } from '../texts.ts'

/** A time is given in years only from two years on. */
const UNITS = [
  { name: 'year', ms: 31_557_600_000, leastMs: 63_115_200_000 },
  { name: 'day', ms: 86_400_000, leastMs: 86_400_000 },
  { name: 'hour', ms: 3_600_000, leastMs: 3_600_000 },
  { name: 'minute', ms: 60_000, leastMs: 60_000 },
] as const

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** A time relative to now in words, such as `5 minutes ago`. */
export function relativeTimeText(ms: number, nowMs = Date.now()): string {
  const gone = ms - nowMs
  const unit = UNITS.find((one) => Math.abs(gone) >= one.leastMs)
  if (unit === undefined) return Math.abs(gone) < 5_000 ? texts.time.now : secondsText(gone)
  return relative.format(Math.round(gone / unit.ms), unit.name)
}

function secondsText(gone: number): string {
  return relative.format(Math.round(gone / 1000), 'second')
}

/** A time in the user's time zone, such as `Nov 29, 2026, 6:00:00 PM`. */
export function exactTimeText(at: string): string {
  return absolute.format(new Date(at))
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat('en', { weekday: 'long', month: 'long', day: 'numeric' })

/** The day of a time in the user's time zone, such as `Sunday, November 29`. */
export function dayText(at: string): string {
  return day.format(new Date(at))
}

/** A time in the user's time zone; in UTC while the pointer is over it. */
export function Time(props: {
  readonly at: string | null | undefined
  readonly isExact?: boolean
  /** True: hours and minutes only, for a list with a heading for each day. */
  readonly isClock?: boolean
}) {
  const date = new Date(props.at ?? '')
  if (Number.isNaN(date.getTime())) return <span class="faint">{texts.time.never}</span>
  const iso = date.toISOString()
  return (
    <time dateTime={iso} title={iso.replace('T', ' ').replace('Z', ' UTC')}>
      {props.isClock === true
        ? clock.format(date)
        : props.isExact === true
          ? absolute.format(date)
          : relativeTimeText(date.getTime())}
    </time>
  )
}
