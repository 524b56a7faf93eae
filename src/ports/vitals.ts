import { NO_LATENCIES } from '../lib/latency-histogram.ts'
import type { LatencyCounts } from '../lib/latency-histogram.ts'

/** How the disk of a log has been in this process. Plain values, so that they cross between threads. */
export interface DiskVitals {
  /** fdatasync of log and meta slots. */
  readonly fsync: LatencyCounts
  /** Handed to the system since the start. */
  readonly writtenBytes: number
  /** On the file system of the log; null when it can not be told. */
  readonly freeBytes: number | null
}

export const NO_DISK_VITALS: DiskVitals = { fsync: NO_LATENCIES, writtenBytes: 0, freeBytes: null }
