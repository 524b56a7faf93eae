import { getHeapStatistics } from 'node:v8'

/**
 * Memory of the calling thread. `process.memoryUsage` is not used, because it opens a file for its
 * process-wide values and fails when no descriptor is left.
 */
export function readThreadMemory(): {
  readonly heapUsedBytes: number
  readonly heapTotalBytes: number
  readonly externalBytes: number
} {
  // @guard no-descriptors-left--memory
  const heap = getHeapStatistics()
  return {
    heapUsedBytes: heap.used_heap_size,
    heapTotalBytes: heap.total_heap_size,
    externalBytes: heap.external_memory,
  }
}

/** Memory of the process; while no file can be opened, the last known values. */
export function readProcessMemory(): NodeJS.MemoryUsage {
  // @guard no-descriptors-left--process
  try {
    last = process.memoryUsage()
  } catch {
    // The error is ignored: no file descriptor is left, and that must not fail the caller.
  }
  return last
}

let last: NodeJS.MemoryUsage = { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }
