import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { expect, test } from 'vitest'
import { seededRandom } from '../../src/lib/random.ts'
import type { Entry, RestoredLog } from '../../src/raft/types.ts'
import { StoreError } from '../../src/store/errors.ts'
import { createDataFolder } from '../../src/store/folder/create-data-folder.ts'
import { openLog, type LogOptions } from '../../src/store/log/open-log.ts'
import { lastNonZeroOffset } from '../../src/store/log/recovery.ts'
import { SEGMENT_HEADER_BYTES } from '../../src/store/log/wal-format.ts'
import { entry, someEntries, summary } from './support/entries.ts'
import { formedFolder, identity, smallLog, temporaryFolder } from './support/folders.ts'
import { fastFileSystem, watchedFileSystem } from './support/power-cut.ts'

// Goal: after any crash the log contains all reported writes, and damage is never mistaken for a
// crash. Method: the test copies the folder of an open log (a crash: the disk is never closed),
// damages the copy, and opens it.

function copyOf(dir: string): string {
  const copy = join(temporaryFolder(), 'data')
  cpSync(dir, copy, { recursive: true })
  return copy
}

function segmentsOf(dir: string): string[] {
  return readdirSync(join(dir, 'wal'))
    .filter((name) => name.endsWith('.seg'))
    .sort((a, b) => a.slice(17).localeCompare(b.slice(17)))
    .map((name) => join(dir, 'wal', name))
}

function lastSegment(dir: string): string {
  return segmentsOf(dir).at(-1) ?? ''
}

/** Length of the file without its trailing zeros. */
function usedBytes(path: string): number {
  const bytes = readFileSync(path)
  let used = bytes.length
  while (used > 0 && bytes[used - 1] === 0) used -= 1
  return used
}

function flipBit(path: string, bit: number): void {
  const bytes = readFileSync(path)
  const at = Math.floor(bit / 8)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << (bit % 8))
  writeFileSync(path, bytes)
}

function recover(dir: string, options: LogOptions = {}): RestoredLog {
  const { disk, restored } = openLog(dir, { ...smallLog, files: fastFileSystem, ...options })
  disk.closeNow()
  return restored
}

function refusal(dir: string, options: LogOptions = {}): StoreError {
  try {
    recover(dir, options)
  } catch (error) {
    if (error instanceof StoreError) return error
    throw error
  }
  throw new Error('the log was opened although it should have been refused')
}

/** Contents of all files, to check that nothing changed. */
function contentOf(dir: string): Map<string, string> {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((file) =>
    file.isFile(),
  )
  return new Map(
    files.map((file) => {
      const path = join(file.parentPath, file.name)
      return [path, readFileSync(path).toString('base64')]
    }),
  )
}

/**
 * A copy of a folder whose log contains `flushes`. Each flush was synced separately, and the meta
 * slots record none of them.
 */
function crashedWith(flushes: readonly (readonly Entry[])[]): string {
  const dir = formedFolder()
  const { disk } = openLog(dir, smallLog)
  flushes.forEach((entries, token) => {
    disk.write({ token, hardState: null, entries, commit: 0 })
    disk.flush()
  })
  const copy = copyOf(dir)
  disk.closeNow()
  return copy
}

test('a log whose last record contains only zeros from some byte on keeps all earlier records, and accepts new records', () => {
  const crashed = crashedWith([[entry(1)], [entry(2)], [entry(3, 1, 50)]])
  const end = usedBytes(lastSegment(crashed))
  // Records end at a multiple of 8.
  const begin = Math.ceil(usedBytes(lastSegment(crashedWith([[entry(1)], [entry(2)]]))) / 8) * 8
  for (let cut = begin; cut < end; cut += 1) {
    const copy = copyOf(crashed)
    const bytes = readFileSync(lastSegment(copy))
    writeFileSync(lastSegment(copy), bytes.fill(0, cut))
    const { disk, restored } = openLog(copy, { ...smallLog, files: fastFileSystem })
    expect(summary(restored.entries), `cut at ${cut}`).toEqual(summary(someEntries(1, 2)))
    disk.write({ token: 1, hardState: null, entries: [entry(3, 2)], commit: 0 })
    disk.closeNow()
    expect(summary(recover(copy).entries)).toEqual(summary([...someEntries(1, 2), entry(3, 2)]))
    rmSync(copy, { recursive: true })
  }
})

test('if any sectors of the last flush are missing, the log is truncated at the first invalid record, and nothing is misread', () => {
  const random = seededRandom(4)
  const flushes = [someEntries(1, 4), someEntries(5, 12, 1, 700)]
  const crashed = crashedWith(flushes)
  const begin = usedBytes(lastSegment(crashedWith(flushes.slice(0, 1))))
  let torn = 0
  for (let round = 0; round < 40; round += 1) {
    const copy = copyOf(crashed)
    const path = lastSegment(copy)
    const bytes = readFileSync(path)
    for (let sector = Math.ceil(begin / 512); sector * 512 < bytes.length; sector += 1) {
      if (random.next() < 0.2) bytes.fill(0, sector * 512, sector * 512 + 512)
    }
    writeFileSync(path, bytes)
    const { entries } = recover(copy)
    expect(entries.length).toBeGreaterThanOrEqual(4)
    expect(summary(entries)).toEqual(summary(flushes.flat().slice(0, entries.length)))
    if (entries.length < 16) torn += 1
    // The rest of the torn flush must not reappear.
    expect(summary(recover(copy).entries)).toEqual(summary(entries))
    rmSync(copy, { recursive: true })
  }
  expect(torn).toBeGreaterThan(30)
})

test('data after a torn record is zeroed, so that it is never mistaken for a continuation', () => {
  const crashed = crashedWith([someEntries(1, 8)])
  const path = lastSegment(crashed)
  flipBit(path, (SEGMENT_HEADER_BYTES + 104 * 4 + 60) * 8)
  const restored = recover(crashed)
  expect(summary(restored.entries)).toEqual(summary(someEntries(1, 4)))
  expect(usedBytes(path)).toBeLessThanOrEqual(SEGMENT_HEADER_BYTES + 104 * 4)
})

test('a flipped bit before the last flush of a log is reported as corruption, in one sentence, and changes nothing on disk; in padding it is harmless', () => {
  const random = seededRandom(7)
  const flushes = [someEntries(1, 3), someEntries(4, 3), [entry(7)]]
  const crashed = crashedWith(flushes)
  const vouched = usedBytes(lastSegment(crashedWith(flushes.slice(0, 2))))
  const restored = flushes.flat()
  let refused = 0
  for (let round = 0; round < 150; round += 1) {
    const copy = copyOf(crashed)
    const at = random.integer(SEGMENT_HEADER_BYTES * 8, vouched * 8 - 1)
    flipBit(lastSegment(copy), at)
    const before = contentOf(copy)
    try {
      // Only changes of padding may remain undetected, and then no data is lost.
      expect(summary(recover(copy).entries)).toEqual(summary(restored))
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      expect(error.code).toBe('CORRUPT')
      expect(error.message).toMatch(/\.seg at byte \d+: .*keep a copy of the folder, then replace/)
      expect(contentOf(copy)).toEqual(before)
      refused += 1
    }
    rmSync(copy, { recursive: true })
  }
  expect(refused).toBeGreaterThan(120)
})

test('any flipped bit in a log that was closed properly is reported as corruption, even in the last record', () => {
  const random = seededRandom(11)
  const dir = formedFolder()
  const { disk } = openLog(dir, smallLog)
  for (let index = 1; index <= 60; index += 1) {
    disk.write({ token: index, hardState: null, entries: [entry(index, 1, 604)], commit: 0 })
    disk.flush()
  }
  disk.closeNow()
  const segments = segmentsOf(dir)
  expect(segments.length).toBeGreaterThan(2)
  for (let round = 0; round < 120; round += 1) {
    const copy = copyOf(dir)
    const path = segmentsOf(copy)[round % segments.length] ?? ''
    flipBit(path, random.integer(0, usedBytes(path) * 8 - 1))
    expect(refusal(copy).code).toBe('CORRUPT')
    rmSync(copy, { recursive: true })
  }
})

test('a flipped bit in the last flush of a log that crashed loses at most this flush, and causes no wrong entries', () => {
  const random = seededRandom(13)
  const flushes = [someEntries(1, 3), someEntries(4, 3)]
  const crashed = crashedWith(flushes)
  const begin = usedBytes(lastSegment(crashedWith(flushes.slice(0, 1))))
  const end = usedBytes(lastSegment(crashed))
  for (let round = 0; round < 100; round += 1) {
    const copy = copyOf(crashed)
    // A bit after the padding of the previous record.
    flipBit(lastSegment(copy), random.integer((begin + 8) * 8, end * 8 - 1))
    const { entries } = recover(copy)
    expect(entries.length).toBeGreaterThanOrEqual(3)
    expect(summary(entries)).toEqual(summary(flushes.flat().slice(0, entries.length)))
    rmSync(copy, { recursive: true })
  }
})

test('a truncated log segment is reported as corruption, even if only zeros are missing', () => {
  const crashed = crashedWith([[entry(1)], [entry(2)]])
  truncateSync(lastSegment(crashed), usedBytes(lastSegment(crashed)) + 8)
  expect(refusal(crashed).message).toMatch(/the file has \d+ bytes instead of 16384/)
})

test('log records that end in zeros after a proper close are reported as corruption', () => {
  const dir = formedFolder(someEntries(1, 5))
  const path = lastSegment(dir)
  const bytes = readFileSync(path)
  bytes.fill(0, usedBytes(path) - 90)
  writeFileSync(path, bytes)
  expect(refusal(dir).message).toMatch(
    /a record is damaged or missing, although the log was synced up to byte \d+/,
  )
})

test('a missing log segment is reported as corruption, whether it is the first, a middle or the last segment', () => {
  const dir = formedFolder()
  const { disk } = openLog(dir, smallLog)
  disk.write({ token: 1, hardState: null, entries: someEntries(1, 80, 1, 700), commit: 0 })
  disk.closeNow()
  const count = segmentsOf(dir).length
  expect(count).toBeGreaterThan(3)
  for (const position of [0, 1, count - 1]) {
    const copy = copyOf(dir)
    rmSync(segmentsOf(copy)[position] ?? '')
    expect(refusal(copy)).toMatchObject({ code: 'CORRUPT' })
    expect(refusal(copy).message).toContain('is missing')
  }
})

test('log records that were copied from an earlier segment are not accepted as part of the log', () => {
  const dir = formedFolder()
  const { disk } = openLog(dir, smallLog)
  disk.write({ token: 1, hardState: null, entries: someEntries(1, 40, 1, 700), commit: 0 })
  disk.closeNow()
  const copy = copyOf(dir)
  const [first = '', second = ''] = segmentsOf(copy)
  const misdirected = readFileSync(second)
  readFileSync(first).copy(misdirected, SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES, 8192)
  writeFileSync(second, misdirected)
  expect(refusal(copy).code).toBe('CORRUPT')
})

test('an intact log record that does not continue the hash chain of the previous record is refused', () => {
  const [dir, other] = [[entry(1)], [{ ...entry(1), timeMs: 5 }]].map((first) => {
    const folder = formedFolder([...first, entry(2)])
    return lastSegment(folder)
  })
  const bytes = readFileSync(dir ?? '')
  // Simulates a disk that returns the second record of another log of the same length.
  readFileSync(other ?? '').copy(bytes, SEGMENT_HEADER_BYTES + 104, SEGMENT_HEADER_BYTES + 104)
  writeFileSync(dir ?? '', bytes)
  const error = refusal(join(dir ?? '', '../..'))
  expect(error.message).toContain('at byte 4200: the hash chain breaks at the record of index 2')
})

test('an intact log segment from another history is not accepted as a continuation of the log', () => {
  const [dir = '', other = ''] = [0, 1].map((later) => {
    const entries = someEntries(1, 40, 1, 700)
    return formedFolder(entries.map((one) => ({ ...one, timeMs: one.timeMs + later })))
  })
  cpSync(segmentsOf(other)[1] ?? '', segmentsOf(dir)[1] ?? '')
  expect(refusal(dir).message).toContain('the segment does not continue the one before it')
})

test('a torn log record whose body looks like a record of another store still counts as torn', () => {
  const foreign = join(temporaryFolder(), 'data')
  const storeId = new Uint8Array(16).fill(9)
  createDataFolder(
    foreign,
    { ...identity, storeId, entries: [entry(3)].map((one) => ({ ...one, index: 1 })) },
    smallLog,
  )
  const body = readFileSync(lastSegment(foreign)).subarray(
    SEGMENT_HEADER_BYTES - 4,
    SEGMENT_HEADER_BYTES + 104,
  )
  const crashed = crashedWith([[entry(1)], [{ ...entry(2), data: Uint8Array.from(body) }]])
  const path = lastSegment(crashed)
  flipBit(path, (SEGMENT_HEADER_BYTES + 104 + 40) * 8)
  expect(summary(recover(crashed).entries)).toEqual(summary([entry(1)]))
  // A later record of this store proves that the damaged record was written completely before.
  const own = crashedWith([[entry(1)], [entry(2)], [entry(3)]])
  flipBit(lastSegment(own), (SEGMENT_HEADER_BYTES + 104 + 40) * 8)
  expect(refusal(own).code).toBe('CORRUPT')
})

test('the commit index stored at a compaction excludes entries that are not durable yet', () => {
  const dir = formedFolder()
  const { disk } = openLog(dir, smallLog)
  disk.write({ token: 1, hardState: null, entries: someEntries(1, 60, 1, 1500), commit: 40 })
  disk.flush()
  disk.write({ token: 2, hardState: null, entries: someEntries(58, 2, 2), commit: 40 })
  disk.write({ token: 3, hardState: null, entries: [], commit: 59 })
  disk.compact({ term: 1, index: 40 })
  const copy = copyOf(dir)
  disk.closeNow()
  const { base, commit } = recover(copy)
  expect(base.index).toBeGreaterThan(0)
  // Entries 58 and 59 of term 2 are committed, but this disk still contains entries 58 and 59 of
  // term 1.
  expect(commit).toBeLessThan(58)
})

test('a header page of the log with any flipped bit is reported as corruption', () => {
  const random = seededRandom(17)
  const dir = formedFolder(someEntries(1, 2))
  for (let round = 0; round < 30; round += 1) {
    const copy = copyOf(dir)
    flipBit(lastSegment(copy), random.integer(0, SEGMENT_HEADER_BYTES * 8 - 1))
    expect(refusal(copy)).toMatchObject({ code: 'CORRUPT' })
    rmSync(copy, { recursive: true })
  }
})

test('if one of the two meta slots is torn, damaged or missing, the other slot still has the newest term and vote', () => {
  const dir = formedFolder()
  const { disk } = openLog(dir, smallLog)
  disk.write({ token: 1, hardState: { term: 5, votedFor: 'ctrl3' }, entries: [], commit: 0 })
  disk.closeNow()
  for (const name of ['meta.0', 'meta.1']) {
    for (const damage of [
      (path: string) => truncateSync(path, 100),
      (path: string) => truncateSync(path, 0),
      (path: string) => rmSync(path),
      (path: string) => flipBit(path, 41 * 8),
      (path: string) => writeFileSync(path, new Uint8Array(4096)),
    ]) {
      const copy = copyOf(dir)
      damage(join(copy, name))
      expect(recover(copy).hardState).toEqual({ term: 5, votedFor: 'ctrl3' })
      // The start repaired this slot, so the other one may be lost now.
      rmSync(join(copy, name === 'meta.0' ? 'meta.1' : 'meta.0'))
      expect(recover(copy).hardState).toEqual({ term: 5, votedFor: 'ctrl3' })
    }
  }
})

test('if both meta slots are damaged, the loss of term and vote is reported, and no value is guessed', () => {
  const dir = formedFolder()
  for (const name of ['meta.0', 'meta.1']) flipBit(join(dir, name), 300)
  expect(refusal(dir).message).toContain('the term and vote of this member are lost')
})

test('a crash at any byte of a write to the meta slots leaves the old term and vote or the new ones', () => {
  const dir = formedFolder()
  const files = watchedFileSystem()
  const { disk } = openLog(dir, { ...smallLog, files })
  disk.write({ token: 1, hardState: { term: 5, votedFor: 'old' }, entries: [], commit: 0 })
  const found = new Set<string>()
  let writes = 0
  const realWrite = files.write
  files.write = (fd, path, bytes, position) => {
    if (path.includes('meta.')) {
      writes += 1
      for (const kept of [0, 1, 60, 512, 2048, 4095]) {
        const copy = copyOf(dir)
        const page = readFileSync(path)
        page.set(bytes.subarray(0, kept), position)
        writeFileSync(path.replace(dir, copy), page)
        found.add(JSON.stringify(recover(copy).hardState))
        rmSync(copy, { recursive: true })
      }
    }
    realWrite(fd, path, bytes, position)
  }
  disk.write({ token: 2, hardState: { term: 6, votedFor: 'new' }, entries: [], commit: 0 })
  files.write = realWrite
  disk.closeNow()
  expect(writes).toBe(2)
  expect([...found].sort()).toEqual(['{"term":5,"votedFor":"old"}', '{"term":6,"votedFor":"new"}'])
})

test('log files of another store are refused as foreign', () => {
  const foreign = join(temporaryFolder(), 'data')
  const storeId = new Uint8Array(16).fill(9)
  createDataFolder(foreign, { ...identity, storeId, entries: someEntries(1, 2) }, smallLog)
  for (const names of [['meta.0', 'meta.1'], ['wal']]) {
    const dir = formedFolder(someEntries(1, 2))
    for (const name of names) {
      cpSync(join(foreign, name), join(dir, name), { recursive: true, force: true })
    }
    const error = refusal(dir)
    expect(error.code).toBe('FOREIGN')
    expect(error.message).toContain('belongs to store 09090909')
  }
})

test('a log file in a newer format is refused with the number of the format, and is not reported as damaged', () => {
  const dir = formedFolder(someEntries(1, 2))
  const raise = (path: string, format: number): void => {
    const page = readFileSync(path)
    page.writeUInt32LE(format, 8)
    page.writeUInt32LE(crc32(page.subarray(0, 4092)), 4092)
    writeFileSync(path, page)
  }
  const newerSegment = copyOf(dir)
  raise(lastSegment(newerSegment), 2)
  const newerMeta = copyOf(dir)
  for (const name of ['meta.0', 'meta.1']) raise(join(newerMeta, name), 3)
  for (const [copy, known] of [
    [newerSegment, 1],
    [newerMeta, 2],
  ] as const) {
    const found = `has format ${known + 1} and this program reads up to ${known}`
    expect(refusal(copy)).toMatchObject({
      code: 'NEWER_FORMAT',
      message: expect.stringContaining(found),
    })
  }
})

test('a state whose position is before the beginning of the log, or which contradicts committed entries, is refused', () => {
  const dir = formedFolder(someEntries(1, 4))
  expect(refusal(dir, { statePosition: { term: 9, index: 3 } }).message).toContain('is committed')
  const { disk } = openLog(dir, smallLog)
  disk.reset({ term: 1, index: 100 }, 1)
  disk.closeNow()
  expect(refusal(dir, { statePosition: null }).message).toContain('the entries between are lost')
  expect(refusal(dir, { statePosition: { term: 1, index: 99 } }).code).toBe('CORRUPT')
  expect(recover(dir, { statePosition: { term: 1, index: 100 } }).base.index).toBe(100)
})

test('if a snapshot has brought the state beyond the end of the log, the log continues after the position of the state', () => {
  const dir = formedFolder(someEntries(1, 4))
  const restored = recover(dir, { statePosition: { term: 3, index: 50 } })
  expect(restored).toMatchObject({ base: { term: 3, index: 50 }, entries: [], commit: 50, boot: 1 })
  const again = recover(dir, { statePosition: { term: 3, index: 50 } })
  expect(again).toMatchObject({ base: { term: 3, index: 50 }, entries: [], commit: 50, boot: 2 })
})

test('a state whose position is in the log does not change the log', () => {
  const dir = formedFolder(someEntries(1, 4))
  expect(recover(dir, { statePosition: { term: 1, index: 2 } }).entries.length).toBe(4)
  expect(recover(dir, { statePosition: null }).entries.length).toBe(4)
})

test('recovery syncs the last segment, whose data may be only in the cache of the operating system', () => {
  const dir = formedFolder()
  const { disk } = openLog(dir, smallLog)
  disk.write({ token: 1, hardState: null, entries: someEntries(1, 3), commit: 0 })
  disk.flush()
  const copy = copyOf(dir)
  disk.closeNow()
  const files = watchedFileSystem()
  const synced: string[] = []
  files.onChange = (call, path) => {
    if (call === 'sync') synced.push(path)
  }
  openLog(copy, { ...smallLog, files }).disk.closeNow()
  expect(synced).toContain(lastSegment(copy))
  expect(existsSync(join(copy, 'wal/next.tmp'))).toBe(false)
})

test('the search for the last nonzero byte works at any place in segments of any length', () => {
  const random = seededRandom(11)
  for (let round = 0; round < 500; round += 1) {
    const bytes = new Uint8Array(random.integer(0, 3 * 4096))
    const from = random.integer(0, bytes.length)
    for (let count = random.integer(0, 2); count > 0 && bytes.length > 0; count -= 1) {
      bytes[random.integer(0, bytes.length - 1)] = random.integer(1, 255)
    }
    const last = bytes.findLastIndex((byte) => byte !== 0)
    expect(lastNonZeroOffset(bytes, from)).toBe(Math.max(last, from - 1))
  }
})
