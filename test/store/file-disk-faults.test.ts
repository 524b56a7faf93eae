import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { seededRandom } from '../../src/lib/random.ts'
import type { FileDisk } from '../../src/store/log/file-disk.ts'
import type { FileSystem } from '../../src/store/file-system.ts'
import { MemoryDisk } from '../support/memory-disk.ts'
import { openLog, type LogOptions } from '../../src/store/log/open-log.ts'
import { entry, someEntries, summary } from './support/entries.ts'
import { formedFolder, smallLog, temporaryFolder } from './support/folders.ts'
import { fastFileSystem, watchedFileSystem } from './support/power-cut.ts'

function opened(options: LogOptions = {}): {
  dir: string
  disk: FileDisk
  seen: (number | string)[]
} {
  const dir = formedFolder()
  const { disk } = openLog(dir, { ...smallLog, ...options })
  const seen: (number | string)[] = []
  disk.onDurable = (token) => seen.push(token)
  disk.onFailed = (error) => seen.push(error.message)
  return { dir, disk, seen }
}

function append(disk: FileDisk, index: number, bodyBytes = 40): void {
  disk.write({ token: index, hardState: null, entries: [entry(index, 1, bodyBytes)], commit: 0 })
}

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: as if`), { code })
}

test('all writes to the log in one event loop turn share one write and one sync call, and are reported as durable after the sync', async () => {
  const files = watchedFileSystem()
  const { disk, seen } = opened({ files, bufferBytes: 65536 })
  const before = { ...files.counts }
  const reported = new Promise((resolve) => {
    disk.onDurable = (token) => {
      // The log prepares the next segment after the report, so only the flush itself is counted
      // here.
      if (token === 1) {
        expect(files.counts).toEqual({ writes: before.writes + 1, syncs: before.syncs + 1 })
      }
      seen.push(token)
      if (token === 64) resolve(undefined)
    }
  })
  for (let index = 1; index <= 64; index += 1) append(disk, index)
  expect(files.counts).toEqual(before)
  await reported
  expect(seen).toEqual(Array.from({ length: 64 }, (_, offset) => offset + 1))
  await disk.close()
})

test('a write made in the durability callback waits for the next sync', async () => {
  const { disk, seen } = opened()
  const reported = new Promise((resolve) => {
    disk.onDurable = (token) => {
      seen.push(token)
      if (token < 3) append(disk, token + 1)
      else resolve(undefined)
      seen.push(`after ${token}`)
    }
  })
  append(disk, 1)
  await reported
  expect(seen).toEqual([1, 'after 1', 2, 'after 2', 3, 'after 3'])
  await disk.close()
})

const failing: readonly (readonly [string, (files: FileSystem) => void])[] = [
  [
    'sync',
    (files) => {
      files.sync = () => {
        throw systemError('EIO')
      }
    },
  ],
  [
    'write',
    (files) => {
      files.write = () => {
        throw systemError('ENOSPC')
      }
    },
  ],
]

for (const [call, breakIt] of failing) {
  test(`after a failed ${call} the log reports one failure, reports no write as durable and does not retry`, async () => {
    const files = watchedFileSystem()
    const { dir, disk, seen } = opened({ files })
    append(disk, 1)
    disk.flush()
    const real = { write: files.write, sync: files.sync }
    breakIt(files)
    append(disk, 2)
    disk.flush()
    // The disk works again, but the pages that it lost are still lost.
    Object.assign(files, real)
    const changes: string[] = []
    files.onChange = (name) => changes.push(name)
    append(disk, 3)
    disk.write({ token: 9, hardState: { term: 9, votedFor: 'x' }, entries: [], commit: 0 })
    disk.compact({ term: 1, index: 1 })
    disk.reset({ term: 1, index: 50 }, 10)
    disk.flush()
    await disk.close()
    expect(changes).toEqual([])
    expect(seen).toEqual([1, expect.stringMatching(/^cannot (write|sync) (the log )?/)])
    expect(disk.failure).not.toBeNull()
    expect(openLog(dir, smallLog).restored.entries.length).toBeGreaterThanOrEqual(1)
  })
}

test('a failure within a write to the log is reported later, never during the call', async () => {
  const files = watchedFileSystem()
  const { disk, seen } = opened({ files })
  files.write = () => {
    throw systemError('ENOSPC')
  }
  const failed = new Promise<Error>((resolve) => {
    disk.onFailed = resolve
  })
  disk.write({ token: 1, hardState: { term: 3, votedFor: null }, entries: [], commit: 0 })
  expect(seen).toEqual([])
  const error = await failed
  expect(error).toMatchObject({ code: 'NO_SPACE' })
  expect(error.message).toContain('the disk or quota is full; free space and start again')
  await disk.close()
})

test('with little disk space left, the log fills its current segment, and then fails before the disk is full', () => {
  const files = watchedFileSystem()
  const { dir, disk, seen } = opened({ files, freeBytesMin: 1_000_000 })
  files.freeBytes = () => 1_000_100
  const writes: string[] = []
  files.onChange = (call, path) => {
    if (call === 'open') writes.push(path)
  }
  for (let index = 1; index <= 40 && disk.failure === null; index += 1) {
    append(disk, index, 1000)
    disk.flush()
  }
  expect(writes).toEqual([])
  expect(disk.failure).toMatchObject({ code: 'NO_SPACE' })
  const durable = seen.length - 1
  expect(durable).toBeGreaterThan(5)
  expect(seen.at(-1)).toContain(
    'are kept in reserve (log.lowSpaceBytes); free space and start again',
  )
  disk.closeNow()
  expect(openLog(dir, smallLog).restored.entries.length).toBe(durable)
})

test('a start with too little disk space is refused with the free and the required number of bytes', () => {
  const { dir, disk } = opened()
  disk.closeNow()
  const files = { ...watchedFileSystem(), freeBytes: () => 5000 }
  expect(() => openLog(dir, { ...smallLog, freeBytesMin: 5001, files })).toThrow(
    'has 5000 bytes free and 5001 (log.lowSpaceBytes) are needed to start',
  )
})

test('a failed assertion in the log is thrown to the caller, and nothing is written afterwards', () => {
  for (const [entries, message] of [
    [[entry(3)], 'entries leave no gap'],
    [[entry(1), entry(3)], 'entries are consecutive'],
    [[entry(1, 2), entry(2, 1)], 'terms do not run back'],
    [[{ ...entry(1), data: new Uint8Array(8 * 1024 * 1024 + 1) }], 'a body is within its limit'],
  ] as const) {
    const { dir, disk } = opened()
    expect(() => disk.write({ token: 1, hardState: null, entries, commit: 0 })).toThrow(message)
    disk.closeNow()
    expect(openLog(dir, smallLog).restored.entries).toEqual([])
  }
  const { disk } = opened()
  disk.write({ token: 1, hardState: { term: 5, votedFor: null }, entries: [], commit: 0 })
  const back = { token: 2, hardState: { term: 4, votedFor: null }, entries: [], commit: 0 }
  expect(() => disk.write(back)).toThrow('the term never runs back')
  disk.closeNow()
})

test('a record that is larger than a segment gets a segment of its size, even with the largest possible body', () => {
  const { dir, disk } = opened()
  const entries = [entry(1), entry(2, 1, 100_000), entry(3, 1, 8 * 1024 * 1024), entry(4)]
  disk.write({ token: 1, hardState: null, entries, commit: 0 })
  disk.closeNow()
  expect(summary(openLog(dir, smallLog).restored.entries)).toEqual(summary(entries))
})

test('the next segment of the log is filled with zeros in advance, so that changing the segment is fast', () => {
  const files = watchedFileSystem()
  const { disk } = opened({ files, segmentBytes: 1024 * 1024 })
  const zerosInFlush: number[] = []
  let zeros = 0
  files.onChange = (call, path) => {
    if (call === 'write' && path.endsWith('next.tmp')) zeros += 1
    if (call === 'rename') zerosInFlush.push(zeros)
  }
  for (let index = 1; zerosInFlush.length < 4; index += 64) {
    zeros = 0
    const entries = someEntries(index, 64, 1, 300)
    disk.write({ token: index, hardState: null, entries, commit: 0 })
    disk.flush()
  }
  disk.closeNow()
  // The log changes to the second segment early, because the formed segment is small. Later segment
  // changes write only a header page.
  expect(zerosInFlush.slice(1)).toEqual([1, 1, 1])
})

test('compaction limits the number of segments while the log grows', () => {
  const { dir, disk } = opened({ files: fastFileSystem })
  let most = 0
  for (let index = 1; index <= 400; index += 1) {
    append(disk, index, 1000)
    disk.flush()
    disk.write({ token: 0, hardState: null, entries: [], commit: index })
    if (index % 20 === 0) disk.compact({ term: 1, index })
    most = Math.max(most, readdirSync(join(dir, 'wal')).length)
  }
  disk.closeNow()
  expect(most).toBeLessThanOrEqual(5)
  const { restored } = openLog(dir, smallLog)
  expect(restored.base.index).toBeGreaterThan(370)
  expect(restored.commit).toBe(400)
})

test('random appends, replacements, term changes, compactions, resets and crashes result in the same log as in a reference implementation', () => {
  const options = { ...smallLog, files: fastFileSystem }
  for (let seed = 1; seed <= 12; seed += 1) {
    const random = seededRandom(seed)
    let dir = formedFolder()
    let { disk } = openLog(dir, options)
    let { disk: twin } = MemoryDisk.form({ sync: 'manual' })
    let [base, last, commit, term] = [0, 0, 0, 1]
    for (let step = 0; step < 60; step += 1) {
      const choice = random.integer(0, 19)
      if (choice === 0 && commit > base) {
        base = random.integer(base, commit)
        for (const target of [disk, twin]) target.compact({ term: 1, index: base })
      } else if (choice === 1) {
        base = last + random.integer(1, 9)
        last = base
        commit = base
        for (const target of [disk, twin]) target.reset({ term, index: base }, step)
      } else {
        const isNewTerm = choice < 6
        if (isNewTerm) term += 1
        const first = isNewTerm ? random.integer(commit + 1, last + 1) : last + 1
        const entries = someEntries(first, random.integer(1, 8), term, random.integer(0, 2500))
        const hardState = isNewTerm ? { term, votedFor: `n${step}` } : null
        last = first + entries.length - 1
        commit = random.integer(commit, Math.max(commit, last - 5))
        for (const target of [disk, twin]) target.write({ token: step, hardState, entries, commit })
      }
      if (choice < 15) continue
      disk.flush()
      twin.sync()
      const copy = join(temporaryFolder(), 'data')
      cpSync(dir, copy, { recursive: true })
      disk.closeNow()
      rmSync(dir, { recursive: true })
      twin.crash()
      const real = openLog(copy, options)
      const slow = twin.reopen()
      const from = real.restored.base.index - slow.restored.base.index
      expect(from, `seed ${seed} step ${step}`).toBeLessThanOrEqual(0)
      expect(summary(real.restored.entries).slice(-from), `seed ${seed} step ${step}`).toEqual(
        summary(slow.restored.entries),
      )
      expect(real.restored.hardState).toEqual(slow.restored.hardState)
      expect(real.restored.commit).toBeLessThanOrEqual(slow.restored.commit)
      dir = copy
      disk = real.disk
      twin = slow.disk
    }
    disk.closeNow()
  }
})
