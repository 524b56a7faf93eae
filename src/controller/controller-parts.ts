import type { Logger } from 'pino'

import type { ControllerConfig } from '../config/controller/options.ts'
import type { EventLines } from '../events/sinks/stream-sink.ts'
import type { AuditTrail } from '../ports/audit.ts'
import type { Credentials } from './start/check-certificates.ts'
import type { RemovalAction } from './start/removal-action.ts'

/** Parts that a controller is started with. */
export interface ControllerParts {
  readonly config: ControllerConfig
  readonly credentials: Credentials
  readonly log: Logger
  /** null: nothing is told of writes. */
  readonly audit?: AuditTrail | null
  /** The standard output, for events; null or absent: none go there. */
  readonly eventLines?: EventLines | null
  /** Called at most once, at any time: nothing works any more and the process must end. */
  readonly onFatal: (error: Error) => void
  /** Start of the process, UTC ms. */
  readonly startedAtMs?: number
  /**
   * The cluster no longer takes this controller as it is; with the meshes of the members known
   * then. May be repeated.
   */
  readonly onOusted?: (fate: RemovalAction, addresses: readonly string[]) => void
}
