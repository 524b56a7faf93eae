import { expect, test } from 'vitest'
import { seededRandom, type Random } from '../../src/lib/random.ts'
import type { DiskWrite, Entry, HardState, Index, RestoredLog } from '../../src/raft/types.ts'
import type { FileDisk } from '../../src/store/log/file-disk.ts'
import { createDataFolder } from '../../src/store/folder/create-data-folder.ts'
import { openLog } from '../../src/store/log/open-log.ts'
import { someEntries, summary } from './support/entries.ts'
import { FaultyMemoryFiles, PowerCut } from './support/faulty-memory-files.ts'
import { identity, smallLog } from './support/folders.ts'

// Goal: reported writes survive every power cut, and a start finds a prefix of the writes, in
// order. Method: the real log over in-memory files that lose unsynced sectors and names. One seed
// determines the operations, the call at which the power fails, and the lost data. Each run starts
// the log several times on the same disk.

/**
 * Expected log after the operations so far. It is never compacted, so that it can be compared from
 * any base.
 */
interface Model {
  readonly hardState: HardState
  /** The index after which `entries` begin. */
  readonly start: Index
  readonly entries: readonly Entry[]
}

interface Operation {
  readonly token: number
  readonly write: DiskWrite | null
  readonly after: Model
}

function lastIndex(model: Model): Index {
  return model.start + model.entries.length
}

function replaced(model: Model, entries: readonly Entry[]): readonly Entry[] {
  const first = entries[0]
  return first === undefined
    ? model.entries
    : [...model.entries.slice(0, first.index - model.start - 1), ...entries]
}

/**
 * All logs that a start may find if the power failed between `before` and the end of `operation`.
 */
function outcomes(before: Model, operation: Operation | null): Model[] {
  if (operation === null) return [before]
  if (operation.write === null) return [before, operation.after]
  const { hardState } = operation.after
  const { entries } = operation.write
  // The old tail may be removed before the first entry that replaces it is on disk.
  const cut = before.entries.slice(0, (entries[0]?.index ?? Infinity) - before.start - 1)
  const prefixes = entries.map((_, count) => replaced(before, entries.slice(0, count + 1)))
  const found = [before, { ...before, hardState }]
  return [
    ...found,
    ...[cut, ...prefixes].map((prefix) => ({ ...before, hardState, entries: prefix })),
  ]
}

function isOutcome(restored: RestoredLog, model: Model): boolean {
  const { base, entries, hardState } = restored
  if (base.index < model.start || base.index > lastIndex(model)) return false
  if (hardState.term !== model.hardState.term) return false
  if (hardState.votedFor !== model.hardState.votedFor) return false
  const expected = summary(model.entries.slice(base.index - model.start))
  return summary(entries).join() === expected.join()
}

class Life {
  readonly #disk: FileDisk
  readonly #random: Random
  /** The log at the start, then after each operation. */
  readonly operations: Operation[] = []
  readonly #begin: Model
  durableToken = 0
  commit: Index
  compacted: Index

  constructor(disk: FileDisk, random: Random, begin: Model, restored: RestoredLog) {
    this.#disk = disk
    this.#random = random
    this.#begin = begin
    this.commit = Math.max(restored.commit, restored.base.index)
    this.compacted = restored.base.index
    disk.onDurable = (token) => {
      this.durableToken = Math.max(this.durableToken, token)
    }
  }

  get model(): Model {
    return this.operations.at(-1)?.after ?? this.#begin
  }

  step(): void {
    const random = this.#random
    const choice = random.integer(0, 19)
    if (choice < 5) this.#disk.flush()
    else if (choice === 5) this.#reset()
    else if (choice < 8) this.#compact()
    else this.#append(choice < 11)
  }

  /**
   * All logs that a start may find: the state after the last durable operation, and all later ones.
   */
  possible(): Model[] {
    const from = this.operations.findIndex(({ token }) => token > this.durableToken)
    if (from === -1) return [this.model]
    const models: Model[] = []
    for (let position = from; position < this.operations.length; position += 1) {
      const before = this.operations[position - 1]?.after ?? this.#begin
      models.push(...outcomes(before, this.operations[position] ?? null))
    }
    return [...models, this.model]
  }

  #append(isNewTerm: boolean): void {
    const random = this.#random
    const before = this.model
    const token = this.operations.length + 1
    const term = before.hardState.term + (isNewTerm || before.hardState.term === 0 ? 1 : 0)
    const first = isNewTerm
      ? random.integer(this.commit + 1, lastIndex(before) + 1)
      : lastIndex(before) + 1
    const count = isNewTerm ? random.integer(0, 3) : random.integer(1, 6)
    const entries = someEntries(first, count, term, random.integer(0, 1500))
    const hardState = term === before.hardState.term ? null : { term, votedFor: `n${token}` }
    const after = {
      ...before,
      hardState: hardState ?? before.hardState,
      entries: replaced(before, entries),
    }
    const ceiling = Math.max(this.commit, Math.min(first - 1, lastIndex(before)))
    const commit = random.integer(this.commit, ceiling)
    const write = { token, hardState, entries, commit }
    this.operations.push({ token, write, after })
    this.#disk.write(write)
    this.commit = commit
  }

  #compact(): void {
    if (this.commit <= this.compacted) return
    const index = this.#random.integer(this.compacted + 1, this.commit)
    const term = this.model.entries[index - this.model.start - 1]?.term ?? 0
    this.compacted = index
    this.#disk.compact({ term, index })
  }

  #reset(): void {
    const token = this.operations.length + 1
    const { hardState } = this.model
    const index = lastIndex(this.model) + this.#random.integer(1, 5)
    this.operations.push({ token, write: null, after: { hardState, start: index, entries: [] } })
    this.#disk.reset({ term: hardState.term, index }, token)
    this.commit = index
    this.compacted = index
  }
}

/** @returns the number of starts whose work a power cut interrupted. */
function manyLives(seed: number): number {
  const random = seededRandom(seed)
  let files = new FaultyMemoryFiles()
  const dir = '/data'
  createDataFolder(dir, { ...identity, entries: someEntries(1, 2) }, { ...smallLog, files })
  let possible: Model[] = [
    { hardState: { term: 1, votedFor: null }, start: 0, entries: someEntries(1, 2) },
  ]
  let cuts = 0
  for (let life = 1; life <= 6; life += 1) {
    const { disk, restored } = openLog(dir, { ...smallLog, files })
    const model = possible.find((candidate) => isOutcome(restored, candidate))
    expect(
      model,
      `seed ${seed} life ${life}: no written state equals the restored one`,
    ).toBeDefined()
    if (model === undefined) return cuts
    expect(restored.boot).toBeGreaterThanOrEqual(life)
    const running = new Life(disk, random, model, restored)
    files.callsLeft = random.integer(1, 120)
    for (let step = 0; step < 60 && disk.failure === null; step += 1) running.step()
    if (disk.failure !== null) cuts += 1
    possible = running.possible()
    files = files.afterPowerCut(random)
    files = cutWhileOpening(files, dir, random)
  }
  return cuts
}

function isPowerCut(error: unknown): boolean {
  return error instanceof PowerCut || (error instanceof Error && isPowerCut(error.cause))
}

/** The power may fail again while the log is repaired. */
function cutWhileOpening(files: FaultyMemoryFiles, dir: string, random: Random): FaultyMemoryFiles {
  if (random.next() < 0.5) return files
  files.callsLeft = random.integer(1, 12)
  try {
    openLog(dir, { ...smallLog, files })
  } catch (error) {
    if (!isPowerCut(error)) throw error
  }
  return files.afterPowerCut(random)
}

test('writes reported as durable survive any power cut, and no start finds data that was never written', () => {
  let cuts = 0
  const seeds = 150
  for (let seed = 1; seed <= seeds; seed += 1) cuts += manyLives(seed)
  // Most power cuts must occur during work, otherwise the test proves little.
  expect(cuts).toBeGreaterThan(seeds * 2)
})

test('a power cut while a data folder is being formed leaves a complete data folder or none', () => {
  let whole = 0
  let none = 0
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = seededRandom(seed)
    const before = new FaultyMemoryFiles()
    before.callsLeft = random.integer(1, 45)
    let isDone = false
    try {
      createDataFolder(
        '/data',
        { ...identity, entries: someEntries(1, 2) },
        { ...smallLog, files: before },
      )
      isDone = true
    } catch (error) {
      if (!isPowerCut(error)) throw error
    }
    const files = before.afterPowerCut(random)
    if (!files.exists('/data')) {
      expect(isDone).toBe(false)
      none += 1
      continue
    }
    whole += 1
    const { restored } = openLog('/data', { ...smallLog, files })
    expect(summary(restored.entries)).toEqual(summary(someEntries(1, 2)))
    expect(restored.commit).toBe(2)
  }
  expect(Math.min(whole, none)).toBeGreaterThan(10)
})
