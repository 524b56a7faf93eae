import { texts } from '../texts.ts'
import { Button } from './button.tsx'
import { DAY_MS, expiryAfter } from './expiry.ts'
import { relativeTimeText } from './time.tsx'

const MINUTE_MS = 60_000

/** Times from now that the input offers, after which access ends. */
const presets = [
  { text: texts.ends.presets.day, ms: DAY_MS },
  { text: texts.ends.presets.week, ms: 7 * DAY_MS },
  { text: texts.ends.presets.month, ms: 30 * DAY_MS },
] as const

/**
 * The time at which access ends or has ended, in words relative to now; null: access has no such
 * time.
 */
export function expiryText(end: unknown, nowMs = Date.now()): string | null {
  const ms = typeof end === 'string' ? Date.parse(end) : NaN
  if (Number.isNaN(ms)) return null
  return ms > nowMs
    ? texts.ends.coming(relativeTimeText(ms, nowMs))
    : texts.ends.passed(relativeTimeText(ms, nowMs))
}

/** A time as the value of an input of the type datetime-local, in the user's zone. */
export function localTimeValue(end: unknown): string {
  const date = new Date(typeof end === 'string' ? end : NaN)
  if (Number.isNaN(date.getTime())) return ''
  const local = new Date(date.getTime() - date.getTimezoneOffset() * MINUTE_MS)
  return local.toISOString().slice(0, 16)
}

/**
 * Converts the value of an input of type datetime-local to RFC 3339; undefined for an empty or
 * incomplete value.
 */
export function expiryFromLocalTime(value: string): string | undefined {
  const date = new Date(value)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

interface EndInputProps {
  readonly ids: {
    readonly id: string
    readonly 'aria-describedby': string | undefined
    readonly 'aria-invalid': boolean
  }
  readonly value: unknown
  /**
   * Name of the policy or role attribute whose end the user sets, for the labels of the buttons; ''
   * if the page has only one such input.
   */
  readonly about: string
  readonly onChange: (end: string | undefined) => void
}

/** Whether the end is that of a preset that the user has just chosen. */
function isNear(end: unknown, ms: number, nowMs = Date.now()): boolean {
  const left = typeof end === 'string' ? Date.parse(end) - nowMs : NaN
  return Math.abs(left - ms) < 5 * MINUTE_MS
}

/** Input for a time: a time in the user's zone, or one of the offered times from now. */
export function ExpiryInput({ ids, value, about, onChange }: EndInputProps) {
  const shown = expiryText(value)
  const named = (text: string): string => (about === '' ? text : texts.ends.about(about, text))
  return (
    <div class="end-input">
      <div class="row">
        <input
          {...ids}
          class="input"
          type="datetime-local"
          value={localTimeValue(value)}
          onInput={({ currentTarget }) => onChange(expiryFromLocalTime(currentTarget.value))}
        />
        {presets.map(({ text, ms }) => (
          <Button
            key={text}
            label={named(text)}
            isPressed={isNear(value, ms)}
            onClick={() => onChange(expiryAfter(ms))}
          >
            {text}
          </Button>
        ))}
        {shown === null ? null : (
          <Button label={named(texts.ends.none)} onClick={() => onChange(undefined)}>
            {texts.ends.none}
          </Button>
        )}
      </div>
      {shown === null ? null : <span class="hint">{shown}</span>}
    </div>
  )
}
