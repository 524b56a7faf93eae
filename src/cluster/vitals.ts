import { NO_DISK_VITALS } from '../ports/vitals.ts'
import type { DiskVitals } from '../ports/vitals.ts'

/** How consensus has been in this process. Counts run from its start. */
export interface HostVitals {
  readonly disk: DiskVitals
  /** Of the thread that consensus and mesh live in. */
  readonly loopDelayP99Ms: number
  /** Times that this member asked for votes, or asked whether it may. */
  readonly elections: number
  readonly leaderChanges: number
  readonly proposalsAccepted: number
  readonly proposalsRefused: number
  /** For want of room in the queue of a peer. */
  readonly droppedFrames: number
  /** Waiting for the peers' connections now. */
  readonly queuedBytes: number
}

export const NO_VITALS: HostVitals = {
  disk: NO_DISK_VITALS,
  loopDelayP99Ms: 0,
  elections: 0,
  leaderChanges: 0,
  proposalsAccepted: 0,
  proposalsRefused: 0,
  droppedFrames: 0,
  queuedBytes: 0,
}
