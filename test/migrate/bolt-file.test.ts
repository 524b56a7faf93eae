import { describe, expect, test } from 'vitest'

import { BoltFile, type BoltBucket } from '../../src/migrate/bolt/bolt-file.ts'
import { MemorySource } from '../../src/migrate/bolt/byte-source.ts'
import { fnv1a } from '../../src/migrate/bolt/meta.ts'
import { MigrationFault } from '../../src/migrate/fault.ts'
import { type BoltTree, bucketOf, writeBolt } from '../support/bolt-writer.ts'

const text = (value: string): Buffer => Buffer.from(value, 'utf8')

function many(count: number, value: (at: number) => Uint8Array | BoltTree): BoltTree {
  return {
    entries: Array.from({ length: count }, (_, at) => [
      text(`key-${String(at).padStart(6, '0')}`),
      value(at),
    ]),
  }
}

const tree = bucketOf({
  small: bucketOf({ a: text('1'), b: text('2') }),
  empty: { entries: [] },
  large: many(2000, (at) => text(`value ${at}`)),
  nested: many(50, (at) =>
    bucketOf({ id: text(String(at)), more: many(30, () => text('x'.repeat(90))) }),
  ),
  long: bucketOf({ value: text('y'.repeat(20_000)), none: Buffer.alloc(0) }),
})

/** The content of a bucket as plain values; nested buckets become objects. */
function contents(file: BoltFile, bucket: BoltBucket): Record<string, unknown> {
  const visited = file.visitedPages()
  const read = (one: BoltBucket): Record<string, unknown> =>
    Object.fromEntries(
      [...file.entries(one, visited)].map(({ key, value, bucket: inner }) => [
        Buffer.from(key).toString('utf8'),
        inner === null ? Buffer.from(value).toString('utf8') : read(inner),
      ]),
    )
  return read(bucket)
}

function plain({ entries }: BoltTree): Record<string, unknown> {
  return Object.fromEntries(
    entries.map(([key, value]) => [
      Buffer.from(key).toString('utf8'),
      value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : plain(value),
    ]),
  )
}

/** Message of the fault when these bytes are opened and checked. */
function faultOf(bytes: Uint8Array): string {
  try {
    new BoltFile(new MemorySource(bytes)).check()
  } catch (error) {
    if (error instanceof MigrationFault) return `${error.code}: ${error.message}`
    throw error
  }
  return 'none'
}

/** Changes both meta pages and corrects their checksums. */
function withMeta(file: Buffer, change: (meta: Buffer) => void): Buffer {
  const made = Buffer.from(file)
  for (const at of [0, 4096]) {
    const meta = made.subarray(at + 16, at + 80)
    change(meta)
    meta.writeBigUInt64LE(fnv1a(meta.subarray(0, 56)), 56)
  }
  return made
}

describe('A bbolt file', () => {
  test.each([
    { pageSize: 4096, isLittleEndian: true },
    { pageSize: 1024, isLittleEndian: true },
    { pageSize: 16_384, isLittleEndian: true },
    { pageSize: 4096, isLittleEndian: false },
  ])('is read with pages of $pageSize bytes, little-endian: $isLittleEndian', (options) => {
    const file = new BoltFile(new MemorySource(writeBolt(tree, options)))
    expect(contents(file, file.root)).toEqual(plain(tree))
    const census = file.check()
    expect(census.reachablePages + census.freePages + 2).toBe(file.meta.highWaterMark)
    expect(census.freePages).toBe(3)
  })

  test('can be searched bucket by bucket', () => {
    const file = new BoltFile(new MemorySource(writeBolt(tree)))
    const found = file.find('nested', 'key-000007')
    expect(found === null ? null : contents(file, found)['id']).toBe('7')
    expect(file.find('nested', 'key-9')).toBeNull()
    expect(file.find('small', 'a')).toBeNull()
  })

  test('is read with the other meta page if one meta page is damaged, and refused if both are', () => {
    const file = writeBolt(tree)
    const first = Buffer.from(file)
    first.fill(0, 0, 4096)
    expect(faultOf(first)).toBe('none')
    expect(new BoltFile(new MemorySource(first)).meta.transaction).toBe(7)
    const second = Buffer.from(file)
    second.fill(0, 4096, 8192)
    expect(new BoltFile(new MemorySource(second)).meta.transaction).toBe(8)
    second.fill(0, 0, 4096)
    expect(faultOf(second)).toMatch(
      /^NOT_A_DATABASE: it is not a database of an OpenZiti controller/,
    )
  })

  test('is refused if it is not a bbolt file, empty or truncated', () => {
    const file = writeBolt(tree)
    expect(faultOf(Buffer.from('SQLite format 3\0'))).toMatch(/^NOT_A_DATABASE/)
    expect(faultOf(Buffer.alloc(0))).toBe(
      'CUT_OFF: the file is empty; name the database of a controller',
    )
    expect(faultOf(file.subarray(0, file.length - 4096))).toBe(
      `CUT_OFF: the database is cut off: it has ${file.length - 4096} bytes, and needs ${file.length}; use another copy`,
    )
  })

  test.each([
    ['a root beyond the file', (meta: Buffer) => meta.writeBigUInt64LE(1n << 40n, 16)],
    ['a root that is a meta page', (meta: Buffer) => meta.writeBigUInt64LE(1n, 16)],
    ['no list of free pages', (meta: Buffer) => meta.fill(0xff, 32, 40)],
    [
      'a free list that is a leaf',
      (meta: Buffer) => meta.writeBigUInt64LE(meta.readBigUInt64LE(16), 32),
    ],
  ])('is refused if it has %s', (_, change) => {
    expect(faultOf(withMeta(writeBolt(tree), change))).toMatch(/^DAMAGED: /)
  })

  test('is refused if a branch page refers back to itself, or if two elements refer to one page', () => {
    const file = writeBolt(tree, { freePages: 0 })
    const branches = pagesWith(file, 1)
    expect(branches.length).toBeGreaterThan(0)
    for (const at of branches) {
      const cyclic = Buffer.from(file)
      cyclic.writeBigUInt64LE(BigInt(at / 4096), at + 16 + 8)
      expect(faultOf(cyclic)).toMatch(/^DAMAGED: .*is used twice/)
      const twice = Buffer.from(file)
      twice.writeBigUInt64LE(twice.readBigUInt64LE(at + 16 + 8), at + 32 + 8)
      expect(faultOf(twice)).toMatch(/^DAMAGED: /)
    }
  })

  test('is refused if elements share bytes, because reading them could use unlimited memory', () => {
    const file = writeBolt(bucketOf({ all: many(60, () => text('z'.repeat(40))) }), {
      freePages: 0,
    })
    const [leaf = 0] = pagesWith(file, 2)
    // Makes each of the last two elements as long as all elements before it.
    for (const back of [1, 2]) {
      const element = leaf + 16 + (60 - back) * 16
      file.writeUInt32LE(16 * back, element + 4)
      file.writeUInt32LE(3000, element + 12)
    }
    expect(faultOf(file)).toMatch(/^DAMAGED: .*an element leaves its page/)
  })

  test('is refused if the keys within a page are not sorted', () => {
    const file = writeBolt(tree, { freePages: 0 })
    const within = Buffer.from(file)
    const key = within.indexOf('key-000003')
    within.write('key-900003', key)
    expect(faultOf(within)).toMatch(/its keys are not in order/)
  })

  test('is refused if a page is neither in a bucket nor free', () => {
    const file = writeBolt(tree)
    const [list = 0] = pagesWith(file, 0x10)
    file.writeUInt16LE(2, list + 10)
    expect(faultOf(file)).toMatch(/some pages are neither in use nor free/)
  })

  test('is read with progress reports if it is large', () => {
    const shares: number[] = []
    const large = many(20_000, () => text('w'.repeat(1000)))
    new BoltFile(new MemorySource(writeBolt(large))).check((share) => shares.push(share))
    expect(shares.length).toBeGreaterThan(0)
    expect(shares).toEqual([...shares].sort((a, b) => a - b))
  })
})

/** Offsets of the pages with this flag. */
function pagesWith(file: Buffer, flag: number): number[] {
  const found: number[] = []
  for (let at = 8192; at < file.length; at += 4096) {
    if (file.readUInt16LE(at + 8) === flag) found.push(at)
  }
  return found
}
