import type { Logger } from 'pino'

import type { ControllerConfig } from '../config/controller/options.ts'
import type { EventLines } from '../events/sinks/stream-sink.ts'
import type { AuditTrail } from '../ports/audit.ts'
import type { Credentials } from './start/check-certificates.ts'
import type { RemovalAction } from './start/removal-action.ts'

/** Inputs of `Controller.start`. */
export interface ControllerDeps {
  readonly config: ControllerConfig
  /** Absolute path of the configuration file; a reload reads the file again. */
  readonly configPath: string
  readonly credentials: Credentials
  readonly log: Logger
  /** Writes audit lines to the log output; null or absent: the controller writes no such lines. */
  readonly audit?: AuditTrail | null
  /** Receives events for standard output; null or absent: the controller writes no events there. */
  readonly eventLines?: EventLines | null
  /**
   * Called when the controller cannot continue and the process must exit, possibly already during
   * the start.
   */
  readonly onFatal: (error: Error) => void
  /** Time at which the process started, UTC ms. */
  readonly startedAtMs?: number
  /**
   * Called when the cluster no longer accepts this controller, with the action that the controller
   * must take and the mesh addresses of the known members. May be called repeatedly.
   */
  readonly onOusted?: (fate: RemovalAction, addresses: readonly string[]) => void
}
