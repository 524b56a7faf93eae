import type { Clock } from '../../lib/clock.ts'
import {
  type Alarm,
  type AlarmCode,
  type AlarmFacts,
  type AlarmRaiser,
  alarmTable,
} from '../alarm-table.ts'
import { type Logger, LogThrottle } from '../logger.ts'

const ALARMS_MAX = 64
const LOG_WINDOW_MS = 60_000

/** An untyped row; `raise` has already checked the type of its facts. */
interface Row {
  text(facts: unknown): string
  about?(facts: unknown): string
}

/**
 * Raised alarms of this controller, at most `ALARMS_MAX`; further ones are ignored. Logs an alarm
 * when it is raised and when it is cleared, unless the same alarm was logged within the last
 * minute.
 */
export class Alarms implements AlarmRaiser {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #raised = new Map<string, Alarm>()
  /** Raised alarms that were logged when they were raised. Clearing one of them is logged too. */
  readonly #logged = new Set<string>()
  readonly #throttle = new LogThrottle({ windowMs: LOG_WINDOW_MS, keysMax: 256 })

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock
    this.#log = log
  }

  raise<C extends AlarmCode>(code: C, facts: AlarmFacts<C>): void {
    const { severity } = alarmTable[code]
    const row: Row = alarmTable[code]
    const text = row.text(facts)
    const key = keyOf(code, row.about?.(facts))
    const known = this.#raised.get(key)
    if (known === undefined && this.#raised.size >= ALARMS_MAX) return
    const sinceMs = known?.sinceMs ?? this.#clock.nowMs()
    this.#raised.set(key, { code, text, sinceMs, severity })
    if (known !== undefined) return
    if (!this.#throttle.allow(key, this.#clock.monotonicMs())) return
    this.#logged.add(key)
    this.#log[severity === 'critical' ? 'error' : 'warn']({ alarm: code }, text)
  }

  clear(code: AlarmCode, about?: string): void {
    const key = keyOf(code, about)
    const known = this.#raised.get(key)
    if (known === undefined) return
    this.#raised.delete(key)
    if (this.#logged.delete(key)) this.#log.info({ alarm: code }, `cleared: ${known.text}`)
  }

  /** The raised alarms, oldest first. */
  list(): readonly Alarm[] {
    return [...this.#raised.values()].sort((a, b) => a.sinceMs - b.sinceMs)
  }
}

function keyOf(code: AlarmCode, about = ''): string {
  return `${code} ${about}`
}
