import { fdatasync, write, writeSync } from 'node:fs'

import type { LineFile } from '../../src/lib/runtime/rotating-file.ts'

/** A simulated disk that accepts only `room` bytes, like one that becomes full during a write. */
export class FillingDisk implements LineFile {
  room = Infinity
  /** Writes that failed because the disk was full. */
  refusals = 0
  isSyncFailing = false

  readonly write: LineFile['write'] = (fd, bytes, done) => {
    const taken = this.#take(bytes.length)
    if (taken > 0) write(fd, bytes.subarray(0, taken), done)
    else setImmediate(done, this.#refusal(), 0)
  }

  readonly writeSync: LineFile['writeSync'] = (fd, bytes) => {
    const taken = this.#take(bytes.length)
    if (taken === 0) throw this.#refusal()
    return writeSync(fd, bytes.subarray(0, taken))
  }

  readonly sync: LineFile['sync'] = (fd, done) => {
    if (this.isSyncFailing) setImmediate(done, this.#refusal())
    else fdatasync(fd, done)
  }

  #take(bytes: number): number {
    const taken = Math.min(bytes, this.room)
    this.room -= taken
    return taken
  }

  #refusal(): NodeJS.ErrnoException {
    this.refusals += 1
    return Object.assign(new Error('no space left'), { code: 'ENOSPC' })
  }
}
