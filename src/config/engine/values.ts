import { isAbsolute, resolve } from 'node:path'

import { durationText } from '../../lib/text/duration-text.ts'
import { parseDuration } from '../../lib/text/duration.ts'
import type { RawValue, ValueType } from './schema.ts'
import { DAY_MS } from './units.ts'

// Value types that any table can use.

const TEXT_CHARACTERS_MAX = 4096
const LIST_ITEMS_MAX = 64

export function integerType(min: number, max: number): ValueType<number> {
  return {
    expected: `an integer from ${min} to ${max}`,
    read: (raw) =>
      typeof raw === 'number' && Number.isSafeInteger(raw) && raw >= min && raw <= max
        ? raw
        : undefined,
    fromText: (text) => (/^-?[0-9]{1,16}$/.test(text) ? Number(text) : text),
  }
}

/** An integer of milliseconds, without a unit. */
export function millisecondsType(min: number, max: number): ValueType<number> {
  const type = integerType(min, max)
  return { ...type, expected: `an integer of milliseconds from ${min} to ${max}, without a unit` }
}

export function numberType(min: number, max: number): ValueType<number> {
  return {
    expected: `a number from ${min} to ${max}`,
    read: (raw) => (typeof raw === 'number' && raw >= min && raw <= max ? raw : undefined),
    fromText: (text) => (/^-?[0-9]{1,16}(?:\.[0-9]{1,16})?$/.test(text) ? Number(text) : text),
  }
}

/** A duration with units, such as `5s`, `1m`, `24h` or `1h30m`, as milliseconds. */
export function durationType(minMs = 0, maxMs = 365 * DAY_MS): ValueType<number> {
  return {
    expected: `a duration such as 5s, 1m or 24h, from ${durationWords(minMs)} to ${durationWords(maxMs)}`,
    read: (raw) => {
      // Refuses a number without a unit, even 0, which Go accepts.
      if (typeof raw !== 'string' || !/[a-zµμ]$/.test(raw) || raw.startsWith('+')) return undefined
      const ms = parseDuration(raw)
      return ms !== null && ms >= minMs && ms <= maxMs ? ms : undefined
    },
    show: durationWords,
  }
}

/** A duration in its usual notation: 24h, 1m30s, 250ms. */
function durationWords(ms: number): string {
  if (ms === 0 || ms % 1000 !== 0) return durationText(ms)
  const parts = [
    [Math.floor(ms / 3_600_000), 'h'],
    [Math.floor((ms % 3_600_000) / 60_000), 'm'],
    [(ms % 60_000) / 1000, 's'],
  ] as const
  return parts.flatMap(([count, unit]) => (count === 0 ? [] : [`${count}${unit}`])).join('')
}

export function booleanType(): ValueType<boolean> {
  return {
    expected: 'true or false',
    read: (raw) => (typeof raw === 'boolean' ? raw : undefined),
    fromText: (text) => (text === 'true' ? true : text === 'false' ? false : text),
  }
}

export function choiceType<const C extends string>(choices: readonly C[]): ValueType<C> {
  return {
    expected: choices.length === 1 ? `${choices[0]}` : `one of ${choices.join(', ')}`,
    read: (raw) => choices.find((one) => one === raw),
  }
}

export function textType(
  expected = 'a text that is not empty',
  isValid: (text: string) => boolean = () => true,
): ValueType<string> {
  return { expected, read: (raw) => (isTextValue(raw) && isValid(raw) ? raw : undefined) }
}

export function isTextValue(raw: RawValue): raw is string {
  return (
    typeof raw === 'string' &&
    raw !== '' &&
    raw.length <= TEXT_CHARACTERS_MAX &&
    !raw.includes('\0')
  )
}

/**
 * Like `type`, but also accepts null, no value, or an empty environment variable; each of them
 * means null.
 */
export function optionalType<T>(type: ValueType<T>): ValueType<T | null> {
  const { expected, read, fromText, show, redacted } = type
  return {
    expected,
    read: (raw, folder) => (raw === null ? null : read(raw, folder)),
    fromText: (text) => (text === '' ? null : (fromText?.(text) ?? text)),
    ...(show === undefined ? {} : { show: (found) => (found === null ? '' : show(found)) }),
    ...(redacted === undefined
      ? {}
      : { redacted: (found) => (found === null ? '' : redacted(found)) }),
  }
}

interface ListSettings {
  readonly expected: string
  readonly itemsMin?: number
  readonly itemsMax?: number
  /** True: refuses duplicate items. */
  readonly isDistinct?: boolean
}

/** A list of values of one type; in an environment variable, commas separate them. */
export function listType<T>(item: ValueType<T>, settings: ListSettings): ValueType<readonly T[]> {
  const { expected, itemsMin = 0, itemsMax = LIST_ITEMS_MAX, isDistinct = false } = settings
  return {
    expected,
    read: (raw, folder) => {
      if (!Array.isArray(raw) || raw.length < itemsMin || raw.length > itemsMax) return undefined
      const items = raw as readonly RawValue[]
      if (isDistinct && new Set(items).size < items.length) return undefined
      const found = items.map((one) => item.read(one, folder)).filter((one) => one !== undefined)
      return found.length === items.length ? found : undefined
    },
    fromText: (written) => (written === '' ? [] : written.split(',').map((one) => one.trim())),
    show: (found) => found.map((one) => item.show?.(one) ?? String(one)).join(', '),
  }
}

/** A list of strings; null or no value means an empty list. */
export function textListType(
  expected = 'a list of texts',
  isValid: (text: string) => boolean = () => true,
): ValueType<readonly string[]> {
  const many = listType(textType(expected, isValid), { expected })
  return { ...many, read: (raw, folder) => many.read(raw ?? [], folder) }
}

/** One string, or a list of one or more strings. */
export function textOrTextsType(
  expected = 'a text, or a list of one or more',
  isValid: (text: string) => boolean = () => true,
): ValueType<readonly string[]> {
  const one = textType(expected, isValid)
  const many = listType(one, { expected, itemsMin: 1 })
  return {
    ...many,
    read: (raw, folder) => many.read(typeof raw === 'string' ? [raw] : raw, folder),
  }
}

/**
 * A path. A relative path starts at the folder of the configuration file or, if it comes from an
 * environment variable, at the working folder.
 */
export function pathType(): ValueType<string> {
  return {
    expected: 'a path',
    read: (raw, folder) => {
      if (!isTextValue(raw)) return undefined
      return isAbsolute(raw) ? resolve(raw) : resolve(folder, raw)
    },
  }
}
