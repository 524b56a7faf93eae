import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

import { MigrationFault } from '../fault.ts'

/** Bytes that are read by position. Nothing is written or locked. */
export interface ByteSource {
  readonly size: number
  /** @returns `length` bytes; fewer only at the end of the file. */
  read(offset: number, length: number): Uint8Array
}

/** A file on disk. The caller must `close` it. */
export class FileSource implements ByteSource {
  readonly size: number
  readonly #fd: number

  /** @throws {MigrationFault} UNREADABLE. */
  constructor(path: string) {
    this.#fd = openToRead(path)
    const status = fstatSync(this.#fd)
    this.size = status.size
    if (status.isFile()) return
    closeSync(this.#fd)
    throw new MigrationFault('UNREADABLE', 'it is not a regular file; name a database file')
  }

  read(offset: number, length: number): Uint8Array {
    const bytes = Buffer.allocUnsafe(length)
    let have = 0
    while (have < length) {
      const count = readSync(this.#fd, bytes, have, length - have, offset + have)
      if (count === 0) break
      have += count
    }
    return bytes.subarray(0, have)
  }

  /** Device and inode number, by which the system lists locks. */
  get identity(): { readonly device: number; readonly inode: number } {
    const { dev, ino } = fstatSync(this.#fd)
    return { device: dev, inode: ino }
  }

  close(): void {
    closeSync(this.#fd)
  }
}

/** Byte source that reads from memory. */
export class MemorySource implements ByteSource {
  readonly size: number
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.size = bytes.length
  }

  read(offset: number, length: number): Uint8Array {
    return this.#bytes.subarray(offset, offset + length)
  }
}

function openToRead(path: string): number {
  try {
    return openSync(path, 'r')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      throw new MigrationFault('UNREADABLE', 'there is no such file; check the path')
    }
    if (code === 'EACCES' || code === 'EPERM') {
      throw new MigrationFault(
        'UNREADABLE',
        'no permission to read it; run it as a user with permission',
      )
    }
    throw new MigrationFault('UNREADABLE', `it cannot be opened (${String(code)})`, error)
  }
}
