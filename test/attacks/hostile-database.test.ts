import { expect, test } from 'vitest'

import { BoltFile } from '../../src/migrate/bolt/bolt-file.ts'
import { MemorySource } from '../../src/migrate/bolt/byte-source.ts'
import { bucketOf, writeBolt } from '../support/bolt-writer.ts'

// The attack: somebody gives an operator a small database whose migration uses all memory or time,
// or one that was copied while a controller wrote to it, so that a part of the network is missing.

const PAGE = 4096
const HEADER = 16
const ELEMENT = 16

function check(file: Buffer): void {
  new BoltFile(new MemorySource(file)).check()
}

function database(count: number, bytes: number): Buffer {
  const records = Array.from({ length: count }, (_, at) => [
    `key-${String(at).padStart(5, '0')}`,
    Buffer.alloc(bytes, 0x61),
  ])
  const all = Object.fromEntries(records) as Record<string, Uint8Array>
  return writeBolt(bucketOf({ all: bucketOf(all) }), { freePages: 1 })
}

/** Offset of the first page with this flag. */
function pageWith(file: Buffer, flag: number): number {
  for (let at = 2 * PAGE; at < file.length; at += PAGE) {
    if (file.readUInt16LE(at + 8) === flag) return at
  }
  throw new Error(`no page has the flag ${flag}`)
}

test('a bbolt page that two branch pages reference is refused, because its content would be read twice', () => {
  const file = database(400, 100)
  check(file)
  const branch = pageWith(file, 1)
  const child = file.readBigUInt64LE(branch + HEADER + 8)
  const leaf = Number(child) * PAGE
  // The second child is the first one again; it contains no keys, so the order of keys is correct.
  file.writeUInt16LE(0, leaf + 10)
  file.writeBigUInt64LE(child, branch + HEADER + ELEMENT + 8)
  expect(() => check(file)).toThrow(/is used twice/)
})

test('a database is refused if several values share bytes of the file, because the values together would exceed the size of the file', () => {
  const file = database(60, 40)
  check(file)
  const leaf = pageWith(file, 2)
  const first = leaf + HEADER
  const start = file.readUInt32LE(first + 4)
  const end = HEADER + 60 * ELEMENT + 60 * (9 + 40)
  for (let at = 0; at < 60; at += 1) {
    const element = first + at * ELEMENT
    const from = at * ELEMENT + file.readUInt32LE(element + 4)
    // Each value extends to the end of the last one.
    file.writeUInt32LE(end - HEADER - from - 9, element + 12)
  }
  expect(start).toBeGreaterThan(0)
  expect(() => check(file)).toThrow(/an element leaves its page/)
})

test('a database copy that contains a page neither in use nor free is refused', () => {
  const file = database(400, 100)
  const list = pageWith(file, 0x10)
  file.writeUInt16LE(0, list + 10)
  expect(() => check(file)).toThrow(/some pages are neither in use nor free/)
})
