import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Clock } from '../../src/lib/clock.ts'
import { Problem, type ProblemCode } from '../../src/lib/problems.ts'
import type { StoreRecord, StoreSnapshot } from '../../src/ports/state-store.ts'
import { LevelStateStore } from '../../src/store/state/level-state-store.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { readFileChunks } from '../../src/backup/backup-files.ts'
import { backupLimits } from '../../src/backup/limits.ts'
import { readBackup } from '../../src/backup/read-backup.ts'
import {
  snapshotFileLimits,
  SnapshotFolder,
  type SnapshotFolderDeps,
} from '../../src/controller/backups/snapshot-folder.ts'
import type { ReplicatedStateMachine } from '../../src/ports/replicated-state-machine.ts'
import { SnapshotDecoder } from '../../src/store/state/snapshot-stream.ts'
import { newCa } from '../support/authorities.ts'
import { markAt } from '../store/state-store-suite.ts'
import { temporaryFolder } from '../store/support/folders.ts'

// Goal: a snapshot is complete, durable and in the right folder, or does not exist.

const { pauseMsMin, namedMax, unnamedMax } = snapshotFileLimits
const startMs = Date.UTC(2026, 10, 22, 7, 8, 9)

class SteppedClock implements Clock {
  ms = 0
  nowMs(): number {
    return startMs + this.ms
  }
  monotonicMs(): number {
    return this.ms
  }
}

const records = Array.from({ length: 200 }, (_, number) => ({
  key: `k${String(number).padStart(4, '0')}`,
  value: `value ${number} ${'é😀'.repeat(number)}`,
}))

async function filled(): Promise<MemoryStateStore> {
  const store = new MemoryStateStore(undefined, { chunkBytes: 1024 })
  await store.write(records, markAt(42))
  return store
}

const root = await newCa('snapshot root', startMs)

type Changes = Partial<Omit<SnapshotFolderDeps, 'machine'>> & {
  readonly machine?: Pick<ReplicatedStateMachine, 'snapshot'>
}

async function setUp(changes: Changes = {}) {
  const dir = temporaryFolder()
  const clock = new SteppedClock()
  const machine = changes.machine ?? (await filled())
  const files = new SnapshotFolder({
    dir,
    clock,
    cluster: {
      clusterId: 'cluster-1',
      generation: 1,
      featureLevel: 1,
      selfId: 'ctrl1',
      members: () => [],
      readIndex: () => Promise.reject(new Error('a snapshot waits for no leader')),
    },
    secrets: { refresh: () => Promise.resolve(), held: () => [] },
    trustDomain: 'test.internal',
    version: 'v1.2.3',
    caPem: () => root.certificatePem,
    freeBytesMin: 0,
    refusal: () => null,
    ...changes,
    machine: {
      snapshot: () => machine.snapshot(),
      waitForApplied: () => Promise.resolve(true),
      get: () => undefined,
      logTimeMs: 0,
    },
  })
  const folder = join(dir, 'snapshots')
  return {
    dir,
    clock,
    files,
    folder,
    names: () => (existsSync(folder) ? readdirSync(folder).sort() : []),
    /** Takes a snapshot after the required pause. */
    takeNext: (path: string | null = null) => {
      clock.ms += pauseMsMin
      return files.take(path)
    },
  }
}

async function problemOf(taking: Promise<string>): Promise<Problem> {
  const error = await taking.then(
    (path) => new Error(`it was written to ${path}`),
    (reason: unknown) => reason,
  )
  if (error instanceof Problem) return error
  throw error
}

async function decoded(path: string) {
  const decoder = new SnapshotDecoder()
  const found: StoreRecord[] = []
  const onState = (bytes: Uint8Array): Promise<void> => {
    found.push(...decoder.push(bytes))
    return Promise.resolve()
  }
  const { manifest } = await readBackup(readFileChunks(path), { privateKeyPem: null, onState })
  return { found, mark: decoder.finish(), manifest }
}

/** Runs `run` between the chunks of a snapshot. */
function between(inner: StoreSnapshot, run: (chunk: number) => void): StoreSnapshot {
  return {
    ...inner,
    async *chunks() {
      let number = 0
      for await (const chunk of inner.chunks()) {
        run(number)
        number += 1
        yield chunk
      }
    },
  }
}

/** A store with one large value, whose snapshot needs several syncs. */
async function large(): Promise<MemoryStateStore> {
  const store = new MemoryStateStore()
  const value = 'x'.repeat(backupLimits.unsyncedBytesMax / 2)
  await store.write(
    ['a', 'b', 'c', 'd', 'e'].map((key) => ({ key, value })),
    markAt(7),
  )
  return store
}

test('a database snapshot contains the records and their log position, and only its owner can read it', async () => {
  const { files, folder, names } = await setUp()
  const path = await files.take(null)
  expect(path).toBe(join(folder, 'state-20261122-070809'))
  expect(names()).toEqual(['state-20261122-070809'])
  const { found, mark, manifest } = await decoded(path)
  expect(found).toEqual(records)
  expect(mark).toEqual(markAt(42))
  expect(manifest).toMatchObject({ index: 42, hasSecrets: false, encryption: null })
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('a database snapshot excludes writes that are applied after its start', async () => {
  const dir = temporaryFolder()
  const store = await LevelStateStore.open(dir, { chunkBytes: 1024, freeBytesMin: 0 })
  await store.write(records, markAt(1))
  const writes: Promise<void>[] = []
  const snapshot = async () =>
    between(await store.snapshot(), (chunk) => {
      if (chunk === 0) writes.push(store.write([{ key: 'k0001', value: 'later' }], markAt(2)))
    })
  const { files } = await setUp({ dir, machine: { snapshot } })
  const { found, mark } = await decoded(await files.take(null))
  await Promise.all(writes)
  expect(writes).toHaveLength(1)
  expect(found).toEqual(records)
  expect(mark).toEqual(markAt(1))
  await store.close()
})

test.each([
  ['named', 'named'],
  ['__DB_DIR__/before.upgrade_2-x', 'before.upgrade_2-x'],
  ['__DB_FILE__.__RAFT_INDEX__.__DATE__.__TIME__', 'state.42.20261122.070809'],
  ['a'.repeat(128), 'a'.repeat(128)],
])('the snapshot path %s refers to a file in the snapshot folder', async (path, name) => {
  const { files, names, folder } = await setUp()
  expect(await files.take(path)).toBe(join(folder, name))
  expect(names()).toEqual([name])
})

test('a snapshot path may be absolute, as in the response to an earlier snapshot request', async () => {
  const { files, folder } = await setUp()
  expect(await files.take(join(folder, 'whole'))).toBe(join(folder, 'whole'))
})

test.each([
  '',
  '.',
  '..',
  '.hidden',
  '-x',
  '../outside',
  'a/b',
  '/etc/passwd',
  '__DB_DIR__',
  '__DB_DIR__/',
  '__DB_DIR__/../state',
  '__DB_DIR__/__DB_DIR__/x',
  '__DB_DIR__x',
  'a\\b',
  'a b',
  'a\n',
  'a\u0000b',
  'é',
  'a'.repeat(129),
  '__RAFT_INDEX__'.repeat(9),
])('the snapshot path %j is refused, and nothing is written', async (path) => {
  const { files, dir } = await setUp()
  const problem = await problemOf(files.take(path))
  expect(problem.code).toBe('COULD_NOT_VALIDATE')
  expect(problem.fault?.field).toBe('path')
  expect(readdirSync(dir)).toEqual([])
})

test('a second database snapshot within a minute is refused, with the time after which to retry', async () => {
  const { files, clock } = await setUp()
  await problemOf(files.take('../no'))
  await files.take('first')
  clock.ms += 20_500
  const problem = await problemOf(files.take('second'))
  expect(problem).toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 40 })
  clock.ms += 39_500
  await files.take('second')
})

test('of two database snapshots at the same time one is refused', async () => {
  const { files, names } = await setUp()
  const [first, second] = await Promise.allSettled([files.take('first'), files.take('second')])
  expect(first.status).toBe('fulfilled')
  expect(second).toMatchObject({ status: 'rejected', reason: { code: 'RATE_LIMITED' } })
  expect(names()).toEqual(['first'])
})

test('a database snapshot never overwrites an existing file, even if the file appears during the snapshot', async () => {
  const inner = await filled()
  let put = (): void => undefined
  const snapshot = async () => between(await inner.snapshot(), () => put())
  const { files, folder, names } = await setUp({ machine: { snapshot } })
  mkdirSync(folder)
  writeFileSync(join(folder, 'mine'), 'mine')
  expect((await problemOf(files.take('mine'))).fault).toMatchObject({ field: 'path' })
  put = () => writeFileSync(join(folder, 'late'), 'mine')
  expect((await problemOf(files.take('late'))).fault).toMatchObject({ field: 'path' })
  expect(names()).toEqual(['late', 'mine'])
  for (const name of names()) expect(readFileSync(join(folder, name), 'utf8')).toBe('mine')
})

test('the newest automatically named database snapshots are kept, and files of other kinds are not removed', async () => {
  const { folder, names, takeNext } = await setUp()
  mkdirSync(folder)
  const others = ['README', 'state-2020', 'state-20200101-000000x']
  for (const name of others) writeFileSync(join(folder, name), '')
  const written: string[] = []
  for (let n = 0; n < unnamedMax + 3; n += 1) {
    const path = await takeNext()
    // Sets the file times to those of the test clock.
    utimesSync(path, n, n)
    written.push(path.slice(folder.length + 1))
  }
  expect(names()).toEqual([...others, ...written.slice(-unnamedMax)].sort())
})

test('database snapshots whose names the callers chose are never removed, and above their maximum number a further one is refused', async () => {
  const { files, names, takeNext } = await setUp()
  for (let n = 0; n < namedMax; n += 1) await takeNext(`named-${n}`)
  const problem = await problemOf(takeNext('one-more'))
  expect(problem.fault).toMatchObject({ field: 'path', reason: expect.stringMatching(/remove/) })
  expect(names()).toHaveLength(namedMax)
  await files.take(null)
  expect(names()).toHaveLength(namedMax + 1)
})

test('a database snapshot is refused, before anything is written, if there is too little free disk space', async () => {
  const wanted: string[] = []
  const freeBytes = (folder: string): Promise<number> => {
    wanted.push(folder)
    return Promise.resolve(2 * 1000 + 299)
  }
  const { files, dir, folder, names } = await setUp({ freeBytesMin: 1000, freeBytes })
  mkdirSync(join(dir, 'state/A'), { recursive: true })
  writeFileSync(join(dir, 'state/A/file'), 'x'.repeat(300))
  const problem = await problemOf(files.take(null))
  expect(problem.code).toBe('INSUFFICIENT_STORAGE')
  expect(problem.detail).toMatch(/2299 bytes free, and 2300 are needed/)
  expect(wanted).toEqual([folder])
  expect(names()).toEqual([])
  writeFileSync(join(dir, 'state/A/file'), 'x'.repeat(299))
  await files.take(null)
})

test('if the disk becomes full during a database snapshot, no part of the snapshot remains', async () => {
  let free = 10_000
  const { files, names, takeNext } = await setUp({
    machine: await large(),
    freeBytesMin: 1000,
    freeBytes: () => {
      const now = free
      free = 1999
      return Promise.resolve(now)
    },
  })
  expect((await problemOf(files.take(null))).code).toBe('INSUFFICIENT_STORAGE')
  expect(names()).toEqual([])
  free = Infinity
  expect((await problemOf(takeNext())).code).toBe('INSUFFICIENT_STORAGE')
})

test('a partial database snapshot of a killed process is removed at the next start, or before the next snapshot', async () => {
  const { files, folder, names } = await setUp()
  mkdirSync(folder)
  const leave = (): void => writeFileSync(join(folder, '.left.partial'), 'x')
  leave()
  writeFileSync(join(folder, 'left.partial'), 'a name like any other')
  await files.removePartial()
  expect(names()).toEqual(['left.partial'])
  leave()
  await files.take('next')
  expect(names()).toEqual(['left.partial', 'next'])
})

test('a database snapshot is discarded if the controller finds the state to be corrupt while it writes the snapshot', async () => {
  let code: ProblemCode | null = null
  const inner = await filled()
  const snapshot = async () =>
    between(await inner.snapshot(), () => {
      code = 'NODE_QUARANTINED'
    })
  const { files, names } = await setUp({ machine: { snapshot }, refusal: () => code })
  expect((await problemOf(files.take(null))).code).toBe('NODE_QUARANTINED')
  expect(names()).toEqual([])
})

test('a controller that stops cancels its running snapshot, waits until the cancellation is complete, and refuses further snapshots', async () => {
  const inner = await large()
  const closing: Promise<void>[] = []
  const snapshot = async () =>
    between(await inner.snapshot(), (chunk) => {
      if (chunk === 0) closing.push(made.files.close())
    })
  const made = await setUp({ machine: { snapshot } })
  expect((await problemOf(made.files.take(null))).code).toBe('TIMEOUT')
  await Promise.all(closing)
  expect(closing).toHaveLength(1)
  expect(made.names()).toEqual([])
  expect((await problemOf(made.takeNext())).code).toBe('TIMEOUT')
})

test('if the store is closed during a database snapshot, the snapshot fails with the error code INDEX_NOT_REACHED and is discarded', async () => {
  const dir = temporaryFolder()
  const store = await LevelStateStore.open(dir, { chunkBytes: 1024, freeBytesMin: 0 })
  const many = Array.from({ length: 5000 }, (_, n) => ({ key: `k${n}`, value: 'x'.repeat(500) }))
  await store.write(many, markAt(1))
  const closing: Promise<void>[] = []
  const snapshot = async () =>
    between(await store.snapshot(), (chunk) => {
      if (chunk === 0) closing.push(store.close())
    })
  const { files, names } = await setUp({ dir, machine: { snapshot } })
  expect((await problemOf(files.take(null))).code).toBe('INDEX_NOT_REACHED')
  await Promise.all(closing)
  expect(names()).toEqual([])
})
