import { expect, test } from 'vitest'
import { seededRandom, type Random } from '../../src/lib/random.ts'
import type { Entry, Position } from '../../src/raft/types.ts'
import { createDataFolder } from '../../src/store/folder/create-data-folder.ts'
import type { FileDisk } from '../../src/store/log/file-disk.ts'
import { higherPosition } from '../../src/store/log/log-evidence.ts'
import { openLog, type LogOptions, type OpenedLog } from '../../src/store/log/open-log.ts'
import { DAMAGES, damageLog, segmentPaths, type Damage } from './support/damage.ts'
import { someEntries, summary } from './support/entries.ts'
import { FaultyMemoryFiles, PowerCut } from './support/faulty-memory-files.ts'
import { identity, smallLog } from './support/folders.ts'

// Goal: after any damage, every entry of the opened log was written before, the commit index does
// not exceed the state, and every reported entry is either present or part of the missing tail.
// Method: one seed determines the writes, how they end, and the damage. Only one kind of loss
// leaves no trace, and the test counts it separately: flushes after the last write of the meta
// slots, in a log that was not closed in order.

const DIR = '/data'
const WAL = `${DIR}/wal`
/** Kinds of damage that may remove several flushes from the end without a trace. */
const WIPING: readonly Damage[] = ['a page of zeros', 'a page of noise', 'a page of another place']

interface Written {
  readonly files: FaultyMemoryFiles
  /**
   * End of the log at three times: when it was last reported durable, one flush before that, and
   * when the meta slots were last written.
   */
  readonly last: Position
  readonly beforeFlush: Position
  readonly atMetaWrite: Position
  readonly state: Position | null
  readonly isClosed: boolean
  /** Every entry ever written, by position. */
  readonly known: ReadonlyMap<string, string>
}

class Writer {
  readonly files = new FaultyMemoryFiles()
  readonly #disk: FileDisk
  readonly #random: Random
  readonly known = new Map<string, string>()
  #log: Entry[] = []
  #term = 1
  #commit = 0
  last: Position = { term: 0, index: 0 }
  beforeFlush: Position = { term: 0, index: 0 }
  atMetaWrite: Position = { term: 0, index: 0 }
  state: Position | null = null

  constructor(random: Random) {
    this.#random = random
    createDataFolder(DIR, { ...identity, entries: [] }, { ...smallLog, files: this.files })
    const { files } = this
    const write = files.write.bind(files)
    files.write = (fd, path, bytes, position) => {
      write(fd, path, bytes, position)
      if (path.includes('/meta.')) this.atMetaWrite = this.last
    }
    this.#disk = openLog(DIR, { ...smallLog, files }).disk
    const hardState = { term: 1, votedFor: null }
    this.#disk.write({ token: 0, hardState, entries: [], commit: 0 })
  }

  step(): void {
    const random = this.#random
    const isNewTerm = random.next() < 0.1
    if (isNewTerm) this.#term += 1
    const from = isNewTerm
      ? random.integer(this.#commit + 1, this.#log.length + 1)
      : this.#log.length + 1
    const entries = someEntries(from, random.integer(1, 5), this.#term, random.integer(0, 900))
    this.#log = [...this.#log.slice(0, from - 1), ...entries]
    for (const one of entries) this.known.set(`${one.term}/${one.index}`, summary([one]).join())
    const hardState = isNewTerm ? { term: this.#term, votedFor: null } : null
    this.#disk.write({ token: 1, hardState, entries, commit: this.#commit })
    this.#disk.flush()
    this.beforeFlush = isNewTerm ? this.atMetaWrite : this.last
    this.last = positionOf(this.#log.at(-1))
    if (random.next() < 0.5) this.#commit = random.integer(this.#commit, this.#log.length)
    if (random.next() < 0.3 && this.#commit > 0) this.state = this.#at(this.#commit)
    if (random.next() < 0.05 && this.state !== null) {
      this.#disk.compact(this.#at(random.integer(1, this.state.index)))
    }
  }

  end(): Written {
    const isClosed = this.#random.next() < 0.5
    if (isClosed) this.#disk.closeNow()
    const { files, last, beforeFlush, atMetaWrite, state, known } = this
    return { files, last, beforeFlush, atMetaWrite, state, isClosed, known }
  }

  #at(index: number): Position {
    return positionOf(this.#log[index - 1])
  }
}

function positionOf(one: Entry | undefined): Position {
  return one === undefined ? { term: 0, index: 0 } : { term: one.term, index: one.index }
}

function written(random: Random, stepsMin = 5): Written {
  const writer = new Writer(random)
  for (let steps = random.integer(stepsMin, 60); steps > 0; steps -= 1) writer.step()
  return writer.end()
}

function reopen({ files, state }: Pick<Written, 'files' | 'state'>): OpenedLog {
  const options: LogOptions = { ...smallLog, files, statePosition: state, hasOtherVoters: true }
  return openLog(DIR, options)
}

function covers(opened: OpenedLog, position: Position): boolean {
  const { base, entries, owed } = opened.restored
  const last = positionOf(
    entries.at(-1) ?? { ...base, timeMs: 0, type: 'noop', data: new Uint8Array(0) },
  )
  const best = owed === null ? last : higherPosition(last, owed)
  return higherPosition(best, position) === best
}

/** @returns whether the loss left no trace. */
function judge(opened: OpenedLog, before: Written, kind: Damage, what: string): boolean {
  const { restored, repair } = opened
  for (const one of restored.entries) {
    expect(before.known.get(`${one.term}/${one.index}`), what).toBe(summary([one]).join())
  }
  if (repair !== null) {
    expect(restored.commit, what).toBe(before.state?.index ?? 0)
    expect(restored.base, what).toEqual(before.state ?? { term: 0, index: 0 })
  }
  if (covers(opened, before.last)) return false
  expect(before.isClosed, `${what}: a log that was closed in order has a known end`).toBe(false)
  const mustCover = WIPING.includes(kind) ? before.atMetaWrite : before.beforeFlush
  expect(covers(opened, mustCover), `${what}: more than one flush was lost undetected`).toBe(true)
  return true
}

function isPowerCut(error: unknown): boolean {
  return error instanceof PowerCut || (error instanceof Error && isPowerCut(error.cause))
}

test.each(DAMAGES)(
  'the repair of a damaged log (%s) records the lost entries as the missing tail, and invents no entry',
  (kind) => {
    let repaired = 0
    let silent = 0
    const seeds = 40
    for (let seed = 1; seed <= seeds; seed += 1) {
      const random = seededRandom(seed)
      const before = written(random)
      damageLog(before.files, WAL, kind, random)
      const what = `seed ${seed}, ${kind}`
      const opened = reopen(before)
      if (judge(opened, before, kind, what)) silent += 1
      if (opened.repair !== null) repaired += 1
      // The log can be opened again, and still has the same missing tail.
      opened.disk.closeNow()
      before.files.unreadable.clear()
      const again = reopen(before)
      expect(again.repair, what).toBeNull()
      expect(again.restored.owed, what).toEqual(opened.restored.owed)
      expect(summary(again.restored.entries), what).toEqual(summary(opened.restored.entries))
    }
    expect(repaired).toBeGreaterThan(seeds / 3)
    expect(silent).toBeLessThan(seeds / 10)
  },
)

test('a power cut at any step of a log repair leaves a folder that the next start can repair', () => {
  let cuts = 0
  for (let seed = 1; seed <= 80; seed += 1) {
    const random = seededRandom(seed)
    const before = written(random)
    const kind = DAMAGES[random.integer(0, DAMAGES.length - 1)] ?? 'a file gone'
    damageLog(before.files, WAL, kind, random)
    const what = `seed ${seed}, ${kind}`
    let { files } = before
    for (let life = 0; life < 4; life += 1) {
      files.callsLeft = random.integer(1, 40)
      try {
        reopen({ files, state: before.state })
      } catch (error) {
        if (!isPowerCut(error)) throw error
        cuts += 1
      }
      const { unreadable } = files
      files = files.afterPowerCut(random)
      for (const path of unreadable) if (files.exists(path)) files.unreadable.add(path)
    }
    judge(reopen({ files, state: before.state }), before, kind, what)
  }
  expect(cuts).toBeGreaterThan(80)
})

test('a log repair keeps copies of the damaged files, replaces the copies of an earlier repair, and keeps none if the disk space is low', () => {
  const random = seededRandom(5)
  const before = written(random)
  const { files } = before
  const path = segmentPaths(files, WAL)[0] ?? ''
  const bytes = files.read(path)
  bytes[5000] = (bytes[5000] ?? 0) ^ 1
  files.damage(path, bytes)
  const { repair, disk } = reopen(before)
  expect(repair?.finding).toContain(path)
  expect(repair?.aside).toBe(`${WAL}/damaged`)
  const aside = `${WAL}/damaged/${path.slice(WAL.length + 1)}`
  expect(files.read(aside)).toEqual(bytes)
  disk.closeNow()
  damageLog(files, WAL, 'a header bit flipped', random)
  reopen(before)
  expect(files.exists(aside)).toBe(false)
  files.freeBytes = () => 20 * 1024
  damageLog(files, WAL, 'a header bit flipped', random)
  expect(reopen(before).repair?.aside).toBeNull()
  expect(files.exists(`${WAL}/damaged`)).toBe(false)
})

test('a damaged log is left unchanged if the controller knows no other voter that could send the lost entries', () => {
  for (const hasOtherVoters of [false, undefined]) {
    const before = written(seededRandom(6))
    const { files, state } = before
    damageLog(files, WAL, 'a header bit flipped', seededRandom(6))
    const options = hasOtherVoters === undefined ? {} : { hasOtherVoters }
    const content = segmentPaths(files, WAL).map((path) => files.read(path))
    expect(() => openLog(DIR, { ...smallLog, files, statePosition: state, ...options })).toThrow(
      /nothing was changed on disk/,
    )
    expect(segmentPaths(files, WAL).map((path) => files.read(path))).toEqual(content)
  }
})

test('a file of another store is refused even if another file is damaged', () => {
  const before = written(seededRandom(7), 50)
  const { files } = before
  const [first = '', second = ''] = segmentPaths(files, WAL)
  files.damage(first, new Uint8Array(16))
  const foreign = new FaultyMemoryFiles()
  const storeId = new Uint8Array(16).fill(9)
  createDataFolder(DIR, { ...identity, storeId, entries: [] }, { ...smallLog, files: foreign })
  files.damage(second, foreign.read(segmentPaths(foreign, WAL)[0] ?? ''))
  expect(() => reopen(before)).toThrow(/belongs to store/)
})

test('a log that begins after the position of the state is replaced by an empty log at this position, and its entries become the missing tail', () => {
  const before = written(seededRandom(8))
  const { files, last } = before
  const state = { term: 0, index: 0 }
  const opened = openLog(DIR, { ...smallLog, files, statePosition: before.state })
  opened.disk.reset({ term: last.term, index: last.index + 5 }, 1)
  opened.disk.closeNow()
  const { restored, repair } = reopen({ files, state: null })
  expect(restored).toMatchObject({ base: state, entries: [], commit: 0 })
  expect(restored.owed).toEqual({ term: last.term, index: last.index + 5 })
  expect(repair?.finding).toContain('the entries between are lost')
})

test('a state that a snapshot brought beyond the log causes no missing tail, because only the log reset was incomplete', () => {
  const before = written(seededRandom(9))
  const state = { term: before.last.term, index: before.last.index + 3 }
  const options = { ...smallLog, files: before.files, statePosition: state, hasOtherVoters: true }
  for (const start of ['the first start', 'the next']) {
    const { restored, disk } = openLog(DIR, { ...options, stateCameBySnapshot: true })
    disk.closeNow()
    expect(restored, start).toMatchObject({ base: state, entries: [], owed: null })
  }
})

test('if the state contains entries beyond the end of the log, the log has lost its end, and the rest of the term becomes the missing tail', () => {
  const before = written(seededRandom(9))
  const state = { term: before.last.term, index: before.last.index + 3 }
  const { restored } = reopen({ files: before.files, state })
  expect(restored).toMatchObject({ base: state, entries: [] })
  expect(restored.owed).toEqual({ term: before.last.term, index: Number.MAX_SAFE_INTEGER })
})
