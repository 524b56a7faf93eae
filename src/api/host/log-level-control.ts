import type { Actor } from '../../ports/actor.ts'

/** Those that a running controller can be switched to. */
export const switchableLogLevels = ['error', 'warn', 'info', 'debug', 'trace'] as const
export type SwitchableLogLevel = (typeof switchableLogLevels)[number]

export interface LogLevelState {
  /** In force. */
  readonly level: string
  /** Of the configuration, in force again after a restart. */
  readonly configured: string
}

/** The least severe lines that this controller logs. */
export interface LogLevelControl {
  get(): LogLevelState
  /** In force at once, also without a quorum, until it is set again or the controller restarts. */
  set(level: SwitchableLogLevel, by: Actor): LogLevelState
}
