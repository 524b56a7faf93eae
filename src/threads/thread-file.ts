import { extname } from 'node:path'
import type { ResourceLimits } from 'node:worker_threads'

/**
 * Path of a thread's program beside this file: a source file, or a built file if this one is built.
 */
export function threadFile(name: 'wal' | 'raft' | 'schema' | 'certificate'): URL {
  return new URL(`./${name}-thread${extname(import.meta.filename)}`, import.meta.url)
}

/**
 * V8 gives a thread at its heap limit another 16 MiB to shut down. If one collection could move
 * more young objects than that to the old generation, V8 would end the whole process.
 */
const YOUNG_MEGABYTES_MAX = 4

/** Heap limits for a thread: exceeding them ends only the thread. */
export function heapLimits(megabytesMax: number): ResourceLimits {
  return { maxOldGenerationSizeMb: megabytesMax, maxYoungGenerationSizeMb: YOUNG_MEGABYTES_MAX }
}
