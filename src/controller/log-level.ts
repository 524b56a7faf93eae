import { ClusterActionRecorder } from '../cluster/action-recorder.ts'
import { type Actor, actorName } from '../ports/actor.ts'
import type {
  LogLevelControl,
  LogLevelState,
  SwitchableLogLevel,
} from '../api/host/log-level-control.ts'
import type { ActionRecorder } from '../ports/membership.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { ControllerDeps } from './controller-deps.ts'

/** The methods of a pino logger that this file uses. */
interface AdjustableLog {
  level: string
  warn(fields: object, message: string): void
}

/**
 * Changes the log level of one controller; the audit log records each change that an operator
 * makes.
 */
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

  /**
   * Sets the level of the configuration, which replaces a level that an operator has switched to.
   */
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
    // The level `error` would suppress the message, so it is logged at the other one of the two
    // levels.
    if (level !== 'error') this.#log.level = level
    this.#log.warn({ from, level, by: actorName(by) }, message)
    this.#log.level = level
    // This promise is not awaited: without a quorum, the audit record waits until its write times
    // out, and operators often switch the level in just that situation.
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
  return new LogLevelSwitch(
    config.id,
    log,
    config.logLevel,
    new ClusterActionRecorder(proposer, log),
  )
}
