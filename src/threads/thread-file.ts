import { extname } from 'node:path'
import type { ResourceLimits } from 'node:worker_threads'

/**
 * Path of the program of a thread: beside this file, as source or built, whichever this one is.
 */
export function threadFile(name: 'wal' | 'raft' | 'schema' | 'certificate'): URL {
  return new URL(`./${name}-thread${extname(import.meta.filename)}`, import.meta.url)
}

/**
 * A thread at the end of its heap is given 16 MiB more to end in. Where one collection can move
 * more young objects than that into the old ones, V8 ends the whole process instead.
 */
const YOUNG_MEGABYTES_MAX = 4

/** Limits of a thread that must end alone when it needs more memory than it may have. */
export function heapLimits(megabytesMax: number): ResourceLimits {
  return { maxOldGenerationSizeMb: megabytesMax, maxYoungGenerationSizeMb: YOUNG_MEGABYTES_MAX }
}
