import { createHash, hash } from 'node:crypto'

/** 128 bits of a SHA-256, as four lanes of 32. */
export interface Lanes {
  readonly a: number
  readonly b: number
  readonly c: number
  readonly d: number
}

/** Longer values are hashed without a copy, although that takes one call more. */
const LONG_CHARACTERS = 65_536

/** The lanes of one record as stored. */
export function digestLanes(key: string, value: string): Lanes {
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
 * An incremental digest of a set of records: the sum of their hashes. The order does not matter,
 * and a change costs one hash. It detects that two controllers diverged; it does not protect
 * against forged records.
 */
export class SetDigest {
  #a = 0
  #b = 0
  #c = 0
  #d = 0

  add(lanes: Lanes): void {
    this.#a = (this.#a + lanes.a) | 0
    this.#b = (this.#b + lanes.b) | 0
    this.#c = (this.#c + lanes.c) | 0
    this.#d = (this.#d + lanes.d) | 0
  }

  remove(lanes: Lanes): void {
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
