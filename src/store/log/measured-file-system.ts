import { LatencyHistogram } from '../../lib/runtime/latency-histogram.ts'
import { readThreadMemory } from '../../lib/runtime/thread-memory.ts'
import type { Clock } from '../../lib/clock.ts'
import type { DiskStats } from '../../ports/stats.ts'
import { logFolder } from './open-log.ts'
import type { FileSystem } from '../file-system.ts'

/** Wraps a file system and measures its fsync times and written bytes. */
export class MeasuredFileSystem {
  readonly files: FileSystem
  readonly #inner: FileSystem
  readonly #clock: Clock
  readonly #histogram = new LatencyHistogram()
  #writtenBytes = 0

  constructor(inner: FileSystem, clock: Clock) {
    this.#inner = inner
    this.#clock = clock
    this.files = {
      ...inner,
      write: (fd, path, bytes, position) => {
        inner.write(fd, path, bytes, position)
        this.#writtenBytes += bytes.length
      },
      sync: (fd, path) => {
        const fromMs = clock.monotonicMs()
        inner.sync(fd, path)
        const nowMs = clock.monotonicMs()
        this.#histogram.record(nowMs - fromMs, nowMs)
      },
    }
  }

  /** @param dir the data folder. */
  vitals(dir: string): DiskStats {
    return {
      fsync: this.#histogram.counts(this.#clock.monotonicMs()),
      writtenBytes: this.#writtenBytes,
      freeBytes: this.#freeBytes(dir),
      memory: readThreadMemory(),
    }
  }

  #freeBytes(dir: string): number | null {
    try {
      return this.#inner.freeBytes(logFolder(dir))
    } catch {
      return null
    }
  }
}
