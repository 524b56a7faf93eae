import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { RestoredLog } from '../../src/raft/types.ts'
import type { FileDisk } from '../../src/store/log/file-disk.ts'
import { createDataFolder } from '../../src/store/folder/create-data-folder.ts'
import { openLog } from '../../src/store/log/open-log.ts'
import { entry, someEntries, summary } from './support/entries.ts'
import { formedFolder, identity, smallLog, temporaryFolder } from './support/folders.ts'
import { fastFileSystem, watchedFileSystem } from './support/power-cut.ts'

// Method: before each call that changes the disk, the test copies the folder in the state in which
// a crash would leave it; the log must be able to open each copy.

function crashPoints(
  prepare: (disk: FileDisk) => void,
  work: (disk: FileDisk) => void,
): RestoredLog[] {
  const dir = formedFolder()
  const files = watchedFileSystem()
  const { disk } = openLog(dir, { ...smallLog, files })
  disk.onFailed = (error) => {
    throw error
  }
  prepare(disk)
  const found: RestoredLog[] = []
  files.onChange = () => found.push(afterCrash(dir))
  work(disk)
  files.onChange = () => {}
  found.push(afterCrash(dir))
  disk.closeNow()
  return found
}

/** Opens the log in the folder, writes, opens it again, and returns what the first start found. */
function afterCrash(dir: string): RestoredLog {
  const copy = join(temporaryFolder(), 'data')
  cpSync(dir, copy, { recursive: true })
  const options = { ...smallLog, files: fastFileSystem }
  const { disk, restored } = openLog(copy, options)
  const next = restored.base.index + restored.entries.length + 1
  const more = entry(next, 99)
  disk.write({ token: 1, hardState: null, entries: [more], commit: 0 })
  disk.closeNow()
  const again = openLog(copy, options)
  expect(summary(again.restored.entries)).toEqual(summary([...restored.entries, more]))
  expect(again.restored.base).toEqual(restored.base)
  again.disk.closeNow()
  rmSync(copy, { recursive: true })
  return restored
}

const large = someEntries(1, 60, 1, 1500)

function fill(disk: FileDisk): void {
  disk.write({ token: 1, hardState: { term: 1, votedFor: 'a' }, entries: large, commit: 60 })
  disk.flush()
}

test('a crash at any step of a log reset leaves either the old log or the new log', () => {
  const found = crashPoints(fill, (disk) => {
    disk.reset({ term: 7, index: 500 }, 2)
    disk.flush()
  })
  const bases = found.map(({ base }) => base.index)
  expect(new Set(bases)).toEqual(new Set([0, 500]))
  expect(bases).toEqual([...bases].sort((a, b) => a - b))
  for (const { base, entries, hardState, commit } of found) {
    expect(summary(entries)).toEqual(summary(base.index === 0 ? large : []))
    expect(hardState).toEqual({ term: 1, votedFor: 'a' })
    if (base.index === 500) expect(commit).toBe(500)
  }
})

test('a crash at any step of a compaction loses no entry after the compaction position', () => {
  const found = crashPoints(fill, (disk) => disk.compact({ term: 1, index: 45 }))
  expect(new Set(found.map(({ base }) => base.index)).size).toBe(2)
  for (const { base, entries } of found) {
    expect(base.index).toBeLessThanOrEqual(45)
    expect(summary(entries)).toEqual(summary(large.slice(base.index)))
  }
})

test('a crash at any step of an append to several segments keeps a prefix that contains all durable entries', () => {
  const found = crashPoints(
    (disk) => {
      disk.write({ token: 1, hardState: null, entries: large.slice(0, 5), commit: 5 })
      disk.flush()
    },
    (disk) => {
      disk.write({ token: 2, hardState: null, entries: large.slice(5), commit: 5 })
      disk.flush()
    },
  )
  expect(found.length).toBeGreaterThan(20)
  for (const { entries } of found) {
    expect(entries.length).toBeGreaterThanOrEqual(5)
    expect(summary(entries)).toEqual(summary(large.slice(0, entries.length)))
  }
  expect(found.at(-1)?.entries.length).toBe(60)
})

test('a crash at any step of replacing entries in several segments leaves the old entries or a prefix of the new ones', () => {
  const replacement = someEntries(10, 30, 2, 1500)
  const found = crashPoints(
    (disk) => {
      disk.write({ token: 1, hardState: null, entries: large, commit: 9 })
      disk.flush()
    },
    (disk) => {
      disk.write({
        token: 2,
        hardState: { term: 2, votedFor: null },
        entries: replacement,
        commit: 9,
      })
      disk.flush()
    },
  )
  let old = 0
  for (const { entries } of found) {
    const replaced = entries.filter(({ term }) => term === 2).length
    const isOld = replaced === 0 && entries.length > 9
    const expected = isOld ? large : [...large.slice(0, 9), ...replacement.slice(0, replaced)]
    expect(summary(entries)).toEqual(summary(expected))
    if (isOld) old += 1
  }
  expect(old).toBeGreaterThan(2)
  expect(found.at(-1)?.entries.length).toBe(39)
})

test('an entry is never stored on disk before its term', () => {
  const found = crashPoints(
    () => {},
    (disk) => {
      for (const term of [1, 2, 3]) {
        const entries = someEntries(term * 2 - 1, 2, term)
        disk.write({ token: term, hardState: { term, votedFor: null }, entries, commit: 0 })
      }
      disk.flush()
    },
  )
  for (const { hardState, entries } of found) {
    expect(hardState.term).toBeGreaterThanOrEqual(entries.at(-1)?.term ?? 0)
    // The log carries out writes in order: a term reaches the disk only after the entries written
    // before it.
    expect(entries.length).toBeGreaterThanOrEqual((hardState.term - 1) * 2)
  }
  expect(found.at(-1)?.entries.length).toBe(6)
})

test('a crash at any step of forming a data folder leaves a complete folder or none, and the forming can be repeated', () => {
  const parent = temporaryFolder()
  const dir = join(parent, 'data')
  const entries = someEntries(1, 2)
  const files = watchedFileSystem()
  const copies: string[] = []
  files.onChange = () => {
    const copy = temporaryFolder()
    cpSync(parent, copy, { recursive: true })
    copies.push(copy)
  }
  createDataFolder(dir, { ...identity, entries }, { ...smallLog, files })
  files.onChange('', '')
  expect(copies.length).toBeGreaterThan(20)
  const options = { ...smallLog, files: fastFileSystem }
  let whole = 0
  for (const copy of copies) {
    const formed = join(copy, 'data')
    if (existsSync(formed)) whole += 1
    else createDataFolder(formed, { ...identity, entries }, options)
    const { disk, restored } = openLog(formed, options)
    expect(restored).toMatchObject({ entries, commit: 2, boot: 1 })
    disk.closeNow()
    expect(readdirSync(copy)).toEqual(['data'])
  }
  expect(whole).toBeGreaterThan(0)
  expect(whole).toBeLessThan(copies.length)
})
