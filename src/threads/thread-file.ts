import { extname } from 'node:path'
import type { ResourceLimits } from 'node:worker_threads'

/**
 * Path of a thread's program in this file's folder: a source file, or a built file if this file is
 * built.
 */
export function threadProgramUrl(name: 'wal' | 'raft' | 'schema' | 'certificate'): URL {
  return new URL(`./${name}-thread${extname(import.meta.filename)}`, import.meta.url)
}

/** Path of the program that opens a state in a separate process; see {@link threadProgramUrl}. */
export function stateProbeUrl(): URL {
  return new URL(`./state-probe${extname(import.meta.filename)}`, import.meta.url)
}

/**
 * Maximum size of the young generation. V8 gives a thread that reaches its heap limit another 16
 * MiB to shut down. If one collection could move more young objects than that to the old
 * generation, V8 would terminate the whole process.
 */
const YOUNG_MEGABYTES_MAX = 4

/** Heap limits for a thread; if it exceeds them, V8 terminates only the thread, not the process. */
export function heapLimits(megabytesMax: number): ResourceLimits {
  return { maxOldGenerationSizeMb: megabytesMax, maxYoungGenerationSizeMb: YOUNG_MEGABYTES_MAX }
}
