import { randomBytes } from 'node:crypto'

/**
 * A source of random numbers in [0, 1). The Raft core and its simulation use a seeded source, so
 * that a test can replay a run exactly.
 */
export interface Random {
  next(): number
  /** A random integer from min to max, both included. */
  integer(min: number, max: number): number
}

/**
 * sfc32: 128 bits of state, derived from a 32-bit seed; fast, independent of the clock, the same on
 * every machine.
 */
export function seededRandom(seed: number): Random {
  let a = 0x9e3779b9
  let b = 0x243f6a88
  let c = 0xb7e15162
  let d = seed >>> 0
  const next = (): number => {
    const t = (a + b + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return (t >>> 0) / 4294967296
  }
  for (let i = 0; i < 15; i += 1) next()
  return { next, integer: (min, max) => min + Math.floor(next() * (max - min + 1)) }
}

const SHORT_ID_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_'

/**
 * A new entity id: 12 characters, close to 72 random bits; safe in a URL path, in a filter string
 * and as a command argument. It never begins with a hyphen, because a command would parse it as an
 * option.
 */
export function newShortId(): string {
  for (;;) {
    let id = ''
    for (const byte of randomBytes(12)) id += SHORT_ID_ALPHABET.charAt(byte & 63)
    if (!id.startsWith('-')) return id
  }
}

const SHORT_ID = /^[0-9A-Za-z_][0-9A-Za-z_-]{11}$/

/**
 * Whether a string has the length and the characters of the ids that {@link newShortId} creates.
 */
export function isShortId(text: string): boolean {
  return SHORT_ID.test(text)
}

/** 16 random bytes, for a store id or a snapshot transfer. */
export function newOpaqueId(): Uint8Array {
  return Uint8Array.from(randomBytes(16))
}
