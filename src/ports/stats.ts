import { type LatencyCounts, NO_LATENCIES } from '../lib/runtime/latency-histogram.ts'

/** Memory of one thread: its JavaScript heap, and buffers outside of it. */
interface ThreadMemory {
  readonly heapUsedBytes: number
  /** Bytes that the heap has allocated from the system, in use or not. */
  readonly heapTotalBytes: number
  readonly externalBytes: number
}

export const NO_MEMORY: ThreadMemory = { heapUsedBytes: 0, heapTotalBytes: 0, externalBytes: 0 }

/**
 * Statistics of this process about the disk that holds the Raft log. Contains only plain numbers,
 * so that threads can send it to each other.
 */
export interface DiskStats {
  /** Durations of fdatasync for the log and its meta slots. */
  readonly fsync: LatencyCounts
  /** Bytes written since the start. */
  readonly writtenBytes: number
  /** Free bytes on the file system of the log; null when unknown. */
  readonly freeBytes: number | null
  /** Memory of the thread that writes the log. */
  readonly memory: ThreadMemory
}

export const ZERO_DISK_STATS: DiskStats = {
  fsync: NO_LATENCIES,
  writtenBytes: 0,
  freeBytes: null,
  memory: NO_MEMORY,
}

/** Statistics of consensus in this process. Counts begin at the start of the process. */
export interface ConsensusStats {
  readonly disk: DiskStats
  /** 99th percentile of the event loop delay of the thread that runs consensus and mesh. */
  readonly loopDelayP99Ms: number
  /** Memory of the thread that runs consensus and mesh. */
  readonly memory: ThreadMemory
  /** Number of Raft log entries that this process holds in memory. */
  readonly logEntries: number
  readonly logBytes: number
  /** Number of pre-votes that this member has started. */
  readonly elections: number
  readonly leaderChanges: number
  readonly proposalsAccepted: number
  readonly proposalsRefused: number
  /** Messages dropped because the queue of a peer was full. */
  readonly droppedFrames: number
  /** Bytes that wait for the peers' connections. */
  readonly queuedBytes: number
}

export const ZERO_CONSENSUS_STATS: ConsensusStats = {
  disk: ZERO_DISK_STATS,
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
