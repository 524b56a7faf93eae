import { ActionLog } from '../cluster/action-recorder.ts'
import { type Actor, actorName } from '../ports/actor.ts'
import type {
  LogLevelControl,
  LogLevelState,
  SwitchableLogLevel,
} from '../api/host/log-level-control.ts'
import type { ActionRecorder } from '../ports/membership.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { ControllerDeps } from './controller-parts.ts'

/** The part of a pino logger that is needed here. */
interface AdjustableLog {
  level: string
  warn(fields: object, message: string): void
}

/** Switches the log level of one controller; the audit log records each switch. */
export class LogLevelSwitch implements LogLevelControl {
  readonly #id: string
  readonly #log: AdjustableLog
  #configured: string
  readonly #actions: ActionRecorder

  constructor(id: string, log: AdjustableLog, configured: string, actions: ActionRecorder) {
    this.#id = id
    this.#log = log
    this.#configured = configured
    this.#actions = actions
  }

  /** Applies the level of the configuration, which also ends an earlier switch. */
  configure(level: string): void {
    this.#configured = level
    this.#log.level = level
  }

  get(): LogLevelState {
    return { level: this.#log.level, configured: this.#configured }
  }

  set(level: SwitchableLogLevel, by: Actor): LogLevelState {
    const from = this.#log.level
    if (level === from) return this.get()
    const message = `log level changed from ${from} to ${level}; a restart resets it to ${this.#configured}`
    // Logged at the more verbose of both levels, so that a switch to `error` is logged as well.
    this.#log.warn({ from, level, by: actorName(by) }, message)
    this.#log.level = level
    // Not awaited: without a quorum the record waits until the write times out, and that is when
    // operators often switch the level.
    void this.#actions.note(
      { action: 'set-log-level', target: this.#id, outcome: 'done', reason: `${from} to ${level}` },
      by,
    )
    return this.get()
  }
}

export function createLogLevelControl(
  { config, log }: ControllerDeps,
  proposer: Proposer,
): LogLevelSwitch {
  return new LogLevelSwitch(config.id, log, config.logLevel, new ActionLog(proposer, log))
}
