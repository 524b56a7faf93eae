import type { Actor } from '../../ports/actor.ts'

/** Levels that a running controller can be switched to. */
export const switchableLogLevels = ['error', 'warn', 'info', 'debug', 'trace'] as const
export type SwitchableLogLevel = (typeof switchableLogLevels)[number]

/** The current log level, and the one of the configuration. */
export interface LogLevelState {
  /** Level in force. */
  readonly level: string
  /** Level of the configuration, which is in force again after a restart. */
  readonly configured: string
}

/** Switches the log level of this controller. */
export interface LogLevelControl {
  get(): LogLevelState
  /**
   * Sets the level at once, also without a quorum, until it is set again or the controller
   * restarts.
   */
  set(level: SwitchableLogLevel, by: Actor): LogLevelState
}
