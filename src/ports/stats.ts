import { type LatencyCounts, NO_LATENCIES } from '../lib/runtime/latency-histogram.ts'

/** Memory of one thread: of its JavaScript heap, and outside of it in buffers. */
export interface ThreadMemory {
  readonly heapUsedBytes: number
  /** Taken from the system for the heap, in use or not. */
  readonly heapTotalBytes: number
  readonly externalBytes: number
}

export const NO_MEMORY: ThreadMemory = { heapUsedBytes: 0, heapTotalBytes: 0, externalBytes: 0 }

/**
 * How the disk of a log has been in this process. Plain values, so that they cross between threads.
 */
export interface DiskVitals {
  /** fdatasync of log and meta slots. */
  readonly fsync: LatencyCounts
  /** Handed to the system since the start. */
  readonly writtenBytes: number
  /** Free bytes on the file system of the log; null when unknown. */
  readonly freeBytes: number | null
  /** Memory of the thread that writes the log. */
  readonly memory: ThreadMemory
}

export const NO_DISK_VITALS: DiskVitals = {
  fsync: NO_LATENCIES,
  writtenBytes: 0,
  freeBytes: null,
  memory: NO_MEMORY,
}

/** How consensus has been in this process. Counts run from its start. */
export interface HostStats {
  readonly disk: DiskVitals
  /** Delay of the thread that consensus and mesh live in. */
  readonly loopDelayP99Ms: number
  /** Memory of the same thread. */
  readonly memory: ThreadMemory
  /** Kept in memory for members that lag behind. */
  readonly logEntries: number
  readonly logBytes: number
  /** Times that this member asked for votes, or asked whether it may. */
  readonly elections: number
  readonly leaderChanges: number
  readonly proposalsAccepted: number
  readonly proposalsRefused: number
  /** Messages dropped because the queue of a peer was full. */
  readonly droppedFrames: number
  /** Waiting for the peers' connections now. */
  readonly queuedBytes: number
}

export const NO_VITALS: HostStats = {
  disk: NO_DISK_VITALS,
  loopDelayP99Ms: 0,
  memory: NO_MEMORY,
  logEntries: 0,
  logBytes: 0,
  elections: 0,
  leaderChanges: 0,
  proposalsAccepted: 0,
  proposalsRefused: 0,
  droppedFrames: 0,
  queuedBytes: 0,
}
