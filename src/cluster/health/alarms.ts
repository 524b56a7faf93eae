import type { Clock } from '../../lib/clock.ts'
import { LogThrottle } from '../log.ts'
import type { Log } from '../log.ts'

/** What each one means and what to do about it stands in docs/operating.md. */
export const ALARM_CODES = [
  'STATE_DIVERGED',
  'STATE_QUARANTINED',
  'APPLY_STOPPED',
  'CLOCK_SKEW',
  'LOW_SPACE',
  'SNAPSHOT_OUTRUN',
  'NO_QUORUM_SPARE',
  'LOG_REPAIRING',
  'CERTIFICATE_EXPIRES',
  'BACKUP_FAILED',
  'BACKUP_HOOK_FAILED',
] as const
export type AlarmCode = (typeof ALARM_CODES)[number]

/** Something an operator must know of. */
export interface Alarm {
  readonly code: AlarmCode
  /** One sentence. */
  readonly text: string
  /** UTC ms. */
  readonly sinceMs: number
  /** What this controller answers can not be trusted: it must be taken out of service. */
  readonly isCritical: boolean
}

const CRITICAL: ReadonlySet<AlarmCode> = new Set(['APPLY_STOPPED', 'STATE_QUARANTINED'])
const ALARMS_MAX = 64
const LOG_WINDOW_MS = 60_000

/** The alarms of this controller that are on now. Each is logged when it is raised and when it is cleared. */
export class Alarms {
  readonly #clock: Clock
  readonly #log: Log
  readonly #raised = new Map<string, Alarm>()
  /** Of those that are on, the ones whose beginning was logged: no other end is. */
  readonly #logged = new Set<string>()
  readonly #throttle = new LogThrottle({ windowMs: LOG_WINDOW_MS, keysMax: 256 })

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /**
   * On until it is cleared; raised again, only its text and its weight change.
   * @param about tells apart alarms of one code: a member, a file.
   */
  raise(code: AlarmCode, text: string, about = '', isCritical = CRITICAL.has(code)): void {
    const key = `${code} ${about}`
    const known = this.#raised.get(key)
    if (known === undefined && this.#raised.size >= ALARMS_MAX) return
    const sinceMs = known?.sinceMs ?? this.#clock.nowMs()
    this.#raised.set(key, { code, text, sinceMs, isCritical })
    const isWorse = isCritical && known?.isCritical === false
    if (known !== undefined && !isWorse) return
    if (!isWorse && !this.#throttle.allow(key, this.#clock.monotonicMs())) return
    this.#logged.add(key)
    this.#log[isCritical ? 'error' : 'warn']({ alarm: code }, text)
  }

  clear(code: AlarmCode, about = ''): void {
    const key = `${code} ${about}`
    const known = this.#raised.get(key)
    if (known === undefined) return
    this.#raised.delete(key)
    if (this.#logged.delete(key)) this.#log.info({ alarm: code }, `cleared: ${known.text}`)
  }

  /** Oldest first. */
  list(): readonly Alarm[] {
    return [...this.#raised.values()].sort((a, b) => a.sinceMs - b.sinceMs)
  }
}
