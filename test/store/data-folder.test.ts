import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { toStoreError } from '../../src/store/errors.ts'
import { lockDataFolder } from '../../src/store/folder/folder-lock.ts'
import { createDataFolder } from '../../src/store/folder/create-data-folder.ts'
import { readDataIdentity, writeDataIdentity } from '../../src/store/log/data-identity.ts'
import { openLog } from '../../src/store/log/open-log.ts'
import { benchWal } from '../../bench/wal.ts'
import { entry, someEntries, summary } from './support/entries.ts'
import { openDataFolder } from './support/data-folder.ts'
import { formedFolder, identity, smallLog, temporaryFolder } from './support/folders.ts'
import { markAt, recordsOf } from './state-store-suite.ts'
import { watchedFileSystem } from './support/power-cut.ts'

const options = { log: smallLog, state: { freeBytesMin: 0 } }

test('a formed data folder can be opened, closed and opened again with its identity, its log and an empty state', async () => {
  const dir = formedFolder(someEntries(1, 2))
  const first = await openDataFolder(dir, options)
  expect(first.identity).toEqual(identity)
  expect(first.restored).toMatchObject({
    commit: 2,
    boot: 1,
    hardState: { term: 1, votedFor: null },
  })
  expect(first.stateStore.mark()).toBeNull()
  first.disk.write({ token: 1, hardState: null, entries: [entry(3)], commit: 3 })
  await first.stateStore.write([{ key: 'a', value: '1' }], markAt(2))
  await first.close()
  const second = await openDataFolder(dir, options)
  expect(summary(second.restored.entries)).toEqual(summary(someEntries(1, 3)))
  expect(second.restored).toMatchObject({ commit: 3, boot: 2 })
  expect(second.stateStore.mark()).toEqual(markAt(2))
  expect(await recordsOf(second.stateStore)).toEqual([['a', '1']])
  await second.close()
})

test('if a crash interrupts a log reset after a received state became active, the next start completes the reset', async () => {
  const source = await openDataFolder(formedFolder(someEntries(1, 2)), options)
  await source.stateStore.write([{ key: 'a', value: '1' }], markAt(70, 4))
  const dir = formedFolder(someEntries(1, 2))
  const joined = await openDataFolder(dir, options)
  const receiver = await joined.stateStore.receive()
  const snapshot = await source.stateStore.snapshot()
  for await (const chunk of snapshot.chunks()) await receiver.write(chunk)
  await receiver.finish()
  await receiver.swap()
  // The test does not reset the log, because the process ends here.
  await joined.close()
  const again = await openDataFolder(dir, options)
  expect(again.restored).toMatchObject({ base: { term: 4, index: 70 }, entries: [], commit: 70 })
  await again.close()
  await snapshot.close()
  await source.close()
})

test('a data folder can be opened only once at a time', async () => {
  const dir = formedFolder()
  const first = await openDataFolder(dir, options)
  const refused = { code: 'IN_USE', message: expect.stringContaining(`(pid ${process.pid})`) }
  await expect(openDataFolder(dir, options)).rejects.toMatchObject(refused)
  await first.close()
  const second = await openDataFolder(dir, options)
  expect(second.restored.boot).toBe(2)
  await second.close()
})

test('the lock on a data folder is released if the process that holds it is killed with SIGKILL', async () => {
  const dir = formedFolder()
  const script = join(import.meta.dirname, 'support/lock-holder.ts')
  const holder = spawn(process.execPath, [script, dir], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(holder.stdout, 'data')
  await expect(openDataFolder(dir, options)).rejects.toMatchObject({
    code: 'IN_USE',
    message: expect.stringContaining(`(pid ${holder.pid})`),
  })
  holder.kill('SIGKILL')
  await once(holder, 'close')
  const opened = await openDataFolder(dir, options)
  expect(opened.restored.boot).toBe(1)
  await opened.close()
})

test('the lock on a data folder is released if opening the folder fails', async () => {
  const dir = formedFolder(someEntries(1, 2))
  const first = await openDataFolder(dir, options)
  await first.stateStore.write([], markAt(1, 9))
  await first.close()
  await expect(openDataFolder(dir, options)).rejects.toMatchObject({ code: 'CORRUPT' })
  const lock = await lockDataFolder(dir)
  await lock.release()
})

test('the log can be opened in a worker thread with options that are plain values', async () => {
  const dir = formedFolder(someEntries(1, 2))
  const script = new URL('./support/log-worker.ts', import.meta.url)
  const statePosition = { term: 1, index: 2 }
  const worker = new Worker(script, {
    workerData: { dir, options: { ...smallLog, statePosition } },
  })
  const [message] = (await once(worker, 'message')) as unknown[]
  expect(message).toEqual({ token: 7, boot: 1, count: 2 })
  await worker.terminate()
  expect(openLog(dir, smallLog).restored.entries.length).toBe(3)
})

test('forming a data folder is refused in a folder that is not empty, which stays unchanged', () => {
  const dir = formedFolder()
  expect(() => createDataFolder(dir, { ...identity, entries: [] }, smallLog)).toThrow(
    'is not empty',
  )
  const own = temporaryFolder()
  writeFileSync(join(own, 'letters'), 'dear')
  expect(() => createDataFolder(own, { ...identity, entries: [] }, smallLog)).toThrow(
    'is not empty',
  )
  expect(readFileSync(join(own, 'letters'), 'utf8')).toBe('dear')
})

test('forming a data folder in an empty folder gives only its owner access', () => {
  const dir = temporaryFolder()
  createDataFolder(dir, { ...identity, entries: [] }, smallLog)
  expect(readDataIdentity(dir)).toEqual(identity)
  expect(statSync(dir).mode & 0o777).toBe(0o700)
  for (const name of ['IDENTITY', 'meta.0', 'meta.1']) {
    expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600)
  }
})

test('a missing data folder and an unwritable one are each reported in one sentence', async () => {
  const parent = temporaryFolder()
  const missing = join(parent, 'nowhere')
  expect(() => readDataIdentity(missing)).toThrow(
    `the data folder ${missing} does not exist: create a cluster (flotilla cluster init)`,
  )
  mkdirSync(join(parent, 'other'))
  await expect(openDataFolder(join(parent, 'other'), options)).rejects.toMatchObject({
    code: 'MISSING',
    message: expect.stringContaining('is not a data folder (no IDENTITY file)'),
  })
  const deep = join(parent, 'a/b/data')
  expect(() => createDataFolder(deep, { ...identity, entries: [] }, smallLog)).toThrow(
    /^cannot create .*: it does not exist\.$/,
  )
  const files = watchedFileSystem()
  files.onChange = (_, path) => {
    throw toStoreError(Object.assign(new Error('no'), { code: 'EACCES' }), 'create', path)
  }
  const refused = join(parent, 'data')
  expect(() =>
    createDataFolder(refused, { ...identity, entries: [] }, { ...smallLog, files }),
  ).toThrow('give the user that runs the controller write access to it')
})

test('a new generation may replace the identity file of a data folder, and manual edits of the file are detected', () => {
  const dir = formedFolder()
  writeDataIdentity(dir, { ...identity, generation: 2 })
  expect(readDataIdentity(dir).generation).toBe(2)
  const path = join(dir, 'IDENTITY')
  const text = readFileSync(path, 'utf8')
  for (const [from, to, code] of [
    ['ctrl1', 'ctrl2', 'CORRUPT'],
    ['"generation":2', '"generation":3', 'CORRUPT'],
    ['"format":1', '"format":2', 'NEWER_FORMAT'],
    ['{', '', 'CORRUPT'],
  ] as const) {
    writeFileSync(path, text.replace(from, to))
    expect(() => readDataIdentity(dir)).toThrow(expect.objectContaining({ code }))
  }
})

test('the log benchmark runs', () => {
  const folder = temporaryFolder()
  const rows = benchWal({ folder, batchSizes: [1, 8], bodyBytes: 300, rounds: 1, roundMs: 5 })
  expect(rows.map(({ batchSize }) => batchSize)).toEqual([1, 8])
  for (const { perSecond, barePerSecond } of rows) {
    expect(perSecond[0]).toBeGreaterThan(0)
    expect(barePerSecond[0]).toBeGreaterThan(0)
  }
})
