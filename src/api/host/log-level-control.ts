import type { Actor } from '../../ports/actor.ts'

/** Levels that can be set on a running controller. */
export const switchableLogLevels = ['error', 'warn', 'info', 'debug', 'trace'] as const
export type SwitchableLogLevel = (typeof switchableLogLevels)[number]

/** The current log level, and the configured level. */
export interface LogLevelState {
  /** The level that the controller uses. */
  readonly level: string
  /** Level in the configuration, which applies again after a restart. */
  readonly configured: string
}

/** Changes the log level of this controller. */
export interface LogLevelControl {
  get(): LogLevelState
  /**
   * Sets the level immediately, even without a quorum. The level remains until it is set again or
   * the controller restarts.
   */
  set(level: SwitchableLogLevel, by: Actor): LogLevelState
}
