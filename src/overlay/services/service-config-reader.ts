import { parseDuration } from '../../lib/text/duration.ts'
import { serviceLimits } from './limits.ts'

export interface PortRange {
  readonly low: number
  readonly high: number
}

export const PORT_MAX = 65_535

/** An invalid config of a service; the message contains the reason. */
class ServiceConfigFault extends Error {
  override readonly name = 'ServiceConfigFault'
}

type Fields = Readonly<Record<string, unknown>>

/**
 * Reads the members of a JSON object, and throws a {@link ServiceConfigFault} for an invalid value.
 */
export class ServiceConfigReader {
  readonly #place: string
  readonly #fields: Fields

  constructor(place: string, value: unknown) {
    this.#place = place
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new ServiceConfigFault(`${place} is no JSON object`)
    }
    this.#fields = value as Fields
  }

  fault(name: string, problem: string): never {
    throw new ServiceConfigFault(`${this.#place}.${name} ${problem}`)
  }

  has(name: string): boolean {
    return this.#value(name) !== null
  }

  text(name: string): string | null {
    const value = this.#value(name)
    if (value === null || typeof value === 'string') return value
    return this.fault(name, 'is no text')
  }

  requiredText(name: string): string {
    const value = this.text(name)
    return value === null || value === '' ? this.fault(name, 'is missing') : value
  }

  flag(name: string): boolean {
    const value = this.#value(name) ?? false
    return typeof value === 'boolean' ? value : this.fault(name, 'is neither true nor false')
  }

  integer(name: string, min: number, max: number): number | null {
    const value = this.#value(name)
    if (value === null) return null
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) {
      return value
    }
    return this.fault(name, `is no integer of ${min} to ${max}`)
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | null {
    const value = this.text(name)
    const found = choices.find((choice) => choice === value)
    return value === null || found !== undefined
      ? (found ?? null)
      : this.fault(name, `is none of ${choices.join(', ')}`)
  }

  duration(name: string): number | null {
    const text = this.text(name)
    if (text === null) return null
    const ms = parseDuration(text)
    return ms === null || ms < 0 ? this.fault(name, 'is no duration, as 5s') : ms
  }

  texts(name: string): readonly string[] {
    return this.#list(name, serviceLimits.hostRulesMax).map((value) =>
      typeof value === 'string' ? value : this.fault(name, 'has a member that is no text'),
    )
  }

  someTexts(name: string): readonly string[] {
    const texts = this.texts(name)
    return texts.length > 0 ? texts : this.fault(name, 'is missing or empty')
  }

  list(name: string, max: number): readonly ServiceConfigReader[] {
    return this.#list(name, max).map(
      (value, at) => new ServiceConfigReader(`${this.#place}.${name}[${at}]`, value),
    )
  }

  portRanges(name: string): readonly PortRange[] {
    const ranges = this.list(name, serviceLimits.hostRulesMax)
    if (ranges.length === 0) this.fault(name, 'is missing or empty')
    return ranges.map((range) => ({
      low: range.integer('low', 0, PORT_MAX) ?? range.fault('low', 'is missing'),
      high: range.integer('high', 0, PORT_MAX) ?? range.fault('high', 'is missing'),
    }))
  }

  /** Reader for an object within this object; an absent object counts as empty. */
  within(name: string): ServiceConfigReader {
    return new ServiceConfigReader(`${this.#place}.${name}`, this.#value(name) ?? {})
  }

  #value(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? (this.#fields[name] ?? null) : null
  }

  #list(name: string, max: number): readonly unknown[] {
    const value = this.#value(name) ?? []
    if (!Array.isArray(value)) return this.fault(name, 'is no list')
    return value.length > max ? this.fault(name, `has more than ${max} members`) : value
  }
}
