import { createHash, hash } from 'node:crypto'

/** 128 bits of a SHA-256, as four 32-bit numbers (lanes). */
export interface DigestLanes {
  readonly a: number
  readonly b: number
  readonly c: number
  readonly d: number
}

/** Longer values are hashed with an additional call, which avoids a copy. */
const LONG_CHARACTERS = 65_536

/** The hash lanes (32-bit parts of a SHA-256) of one stored record. */
export function digestLanes(key: string, value: string): DigestLanes {
  const bytes =
    value.length < LONG_CHARACTERS
      ? hash('sha256', `${key}\0${value}`, 'buffer')
      : createHash('sha256').update(`${key}\0`).update(value).digest()
  return {
    a: bytes.readInt32LE(0),
    b: bytes.readInt32LE(4),
    c: bytes.readInt32LE(8),
    d: bytes.readInt32LE(12),
  }
}

/**
 * An incremental digest over a set of records: the sum of their hashes. The order of the records
 * does not matter, and a change costs one hash. The digest detects that two controllers have
 * diverged; it does not protect against forged records.
 */
export class SetDigest {
  #a = 0
  #b = 0
  #c = 0
  #d = 0

  add(lanes: DigestLanes): void {
    this.#a = (this.#a + lanes.a) | 0
    this.#b = (this.#b + lanes.b) | 0
    this.#c = (this.#c + lanes.c) | 0
    this.#d = (this.#d + lanes.d) | 0
  }

  remove(lanes: DigestLanes): void {
    this.#a = (this.#a - lanes.a) | 0
    this.#b = (this.#b - lanes.b) | 0
    this.#c = (this.#c - lanes.c) | 0
    this.#d = (this.#d - lanes.d) | 0
  }

  clear(): void {
    this.#a = 0
    this.#b = 0
    this.#c = 0
    this.#d = 0
  }

  hex(): string {
    return [this.#a, this.#b, this.#c, this.#d]
      .map((lane) => (lane >>> 0).toString(16).padStart(8, '0'))
      .join('')
  }
}
