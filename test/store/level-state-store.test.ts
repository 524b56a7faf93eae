import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LevelStateStore } from '../../src/store/state/level-state-store.ts'
import { type StateStoreOptions } from '../../src/store/state/level-records.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import {
  chunksOf,
  markAt,
  recordsOf,
  stateStoreSuite,
  type OpenedStore,
} from './state-store-suite.ts'
import { temporaryFolder } from './support/folders.ts'
import { watchedFileSystem } from './support/power-cut.ts'

const chunkBytes = 4096
const small: StateStoreOptions = { chunkBytes, receiveBatchBytes: 8192, freeBytesMin: 0 }

async function harness(dir: string): Promise<OpenedStore> {
  const store = await LevelStateStore.open(dir, small)
  return {
    store,
    reopen: async () => {
      await store.close()
      return await harness(dir)
    },
  }
}

stateStoreSuite('LevelDB store', chunkBytes, async () => await harness(temporaryFolder()))

test('the memory store and the LevelDB store read each other’s snapshots and produce the same bytes', async () => {
  const level = await LevelStateStore.open(temporaryFolder(), small)
  const memory = new MemoryStateStore(undefined, { chunkBytes })
  const records = Array.from({ length: 300 }, (_, number) => ({
    key: `k${number}`,
    value: `v${number}`,
  }))
  await memory.write(records, markAt(9))
  const receiver = await level.receive()
  for (const chunk of await chunksOf(memory)) await receiver.write(chunk)
  await receiver.finish()
  await receiver.swap()
  const fromLevel = Buffer.concat(await chunksOf(level))
  expect(fromLevel.equals(Buffer.concat(await chunksOf(memory)))).toBe(true)
  await level.close()
})

test('after SIGKILL the state store contains the records and the position mark of one batch, never a mixture', async () => {
  const dir = temporaryFolder()
  const script = join(import.meta.dirname, 'support/write-forever.ts')
  for (let round = 0; round < 3; round += 1) {
    const child = spawn(process.execPath, [script, dir], { stdio: ['ignore', 'pipe', 'inherit'] })
    let durable = 0
    const target = 40 * (round + 1)
    let rest = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      durable = Number(lines.at(-1) ?? durable)
      if (durable >= target) child.kill('SIGKILL')
    })
    await once(child, 'close')
    expect(durable).toBeGreaterThanOrEqual(target)
    const store = await LevelStateStore.open(dir, small)
    const index = store.mark()?.position.index ?? 0
    expect(index).toBeGreaterThanOrEqual(durable)
    const values = (await recordsOf(store)).map(([, value]) => Number(value))
    expect(values).toEqual(Array.from({ length: 10 }, () => index))
    await store.close()
  }
})

test('a crash at any step of receiving a snapshot and activating it leaves the old state or the new state', async () => {
  const source = new MemoryStateStore(undefined, { chunkBytes })
  const many = Array.from({ length: 500 }, (_, number) => ({ key: `k${number}`, value: 'new' }))
  await source.write(many, markAt(500))
  const files = watchedFileSystem()
  const dir = temporaryFolder()
  const store = await LevelStateStore.open(dir, { ...small, files })
  await store.write([{ key: 'old', value: '1' }], markAt(3))
  const copies: string[] = []
  files.onChange = () => {
    const copy = join(temporaryFolder(), 'data')
    cpSync(dir, copy, { recursive: true })
    copies.push(copy)
  }
  const receiver = await store.receive()
  for (const chunk of await chunksOf(source)) {
    await receiver.write(chunk)
    files.onChange('', '')
  }
  await receiver.finish()
  await receiver.swap()
  files.onChange('', '')
  await store.close()
  expect(copies.length).toBeGreaterThan(6)
  const found: number[] = []
  for (const copy of copies) {
    const opened = await LevelStateStore.open(copy, small)
    const index = opened.mark()?.position.index ?? 0
    found.push(index)
    const expected =
      index === 3 ? [['old', '1']] : many.map(({ key, value }) => [key, value]).sort()
    expect(await recordsOf(opened)).toEqual(expected)
    // Opening the store removes old files next to the active half.
    expect(readdirSync(join(copy, 'state')).sort()).toEqual([index === 3 ? 'A' : 'B', 'CURRENT'])
    await opened.close()
  }
  expect(found).toEqual([...found].sort((a, b) => a - b))
  expect(new Set(found)).toEqual(new Set([3, 500]))
})

test('after a failed write the state store refuses further writes, and the next start finds the last durable batch', async () => {
  const dir = temporaryFolder()
  const files = watchedFileSystem()
  const store = await LevelStateStore.open(dir, { ...small, freeBytesMin: 1000, files })
  await store.write([{ key: 'a', value: '1' }], markAt(1))
  files.freeBytes = () => 999
  await expect(store.write([{ key: 'a', value: '2' }], markAt(2))).rejects.toMatchObject({
    code: 'NO_SPACE',
    message: expect.stringContaining('free space and start again'),
  })
  files.freeBytes = () => 1_000_000
  await expect(store.write([{ key: 'a', value: '3' }], markAt(3))).rejects.toMatchObject({
    code: 'NO_SPACE',
  })
  await store.close()
  const again = await LevelStateStore.open(dir, small)
  expect(again.mark()).toEqual(markAt(1))
  expect(await recordsOf(again)).toEqual([['a', '1']])
  await again.close()
})

test('after a failed change of the file CURRENT the state store refuses further writes, because it may not know which of its two folders is in use', async () => {
  const source = new MemoryStateStore()
  await source.write([{ key: 'n', value: '1' }], markAt(9))
  const files = watchedFileSystem()
  const store = await LevelStateStore.open(temporaryFolder(), { ...small, files })
  const receiver = await store.receive()
  for (const chunk of await chunksOf(source)) await receiver.write(chunk)
  await receiver.finish()
  files.onChange = (call) => {
    if (call === 'rename') throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
  }
  await expect(receiver.swap()).rejects.toMatchObject({ code: 'IO' })
  await expect(store.write([], markAt(10))).rejects.toMatchObject({ code: 'IO' })
  await store.close()
})

test('a flipped bit in a value of the state store is detected when the value is read', async () => {
  const dir = temporaryFolder()
  const store = await LevelStateStore.open(dir, small)
  await store.write([{ key: 'victim', value: 'harmless' }], markAt(1))
  await store.close()
  const live = join(dir, 'state/A')
  // Opening moves the record from LevelDB's own log into a table, whose blocks it does not verify.
  await (await LevelStateStore.open(dir, small)).close()
  let flips = 0
  for (const name of readdirSync(live)) {
    const path = join(live, name)
    const bytes = readFileSync(path)
    const at = bytes.indexOf('harmless')
    if (!name.endsWith('.ldb') || at < 0) continue
    bytes[at] = (bytes[at] ?? 0) ^ 1
    writeFileSync(path, bytes)
    flips += 1
  }
  expect(flips).toBeGreaterThan(0)
  const damaged = await LevelStateStore.open(dir, small)
  await expect(recordsOf(damaged)).rejects.toMatchObject({ code: 'CORRUPT' })
  await damaged.close()
})

test('a missing or invalid file CURRENT is reported as damage, and the state store is not treated as empty', async () => {
  const dir = temporaryFolder()
  await (await LevelStateStore.open(dir, small)).close()
  writeFileSync(join(dir, 'state/CURRENT'), 'C\n')
  await expect(LevelStateStore.open(dir, small)).rejects.toMatchObject({ code: 'CORRUPT' })
  rmSync(join(dir, 'state/CURRENT'))
  await expect(LevelStateStore.open(dir, small)).rejects.toMatchObject({ code: 'CORRUPT' })
  expect(existsSync(join(dir, 'state/A'))).toBe(true)
})

test('a state store that is a file instead of a folder is reported in one sentence', async () => {
  const dir = temporaryFolder()
  mkdirSync(join(dir, 'state'))
  writeFileSync(join(dir, 'state/CURRENT'), 'A\n')
  writeFileSync(join(dir, 'state/A'), 'no folder')
  const error: unknown = await LevelStateStore.open(dir, small).catch((cause: unknown) => cause)
  expect(error).toMatchObject({ name: 'StoreError', path: join(dir, 'state/A') })
  expect(String(error)).not.toContain('\n')
})

test('reading a snapshot fails with the code CLOSED after its state store was closed', async () => {
  const store = await LevelStateStore.open(temporaryFolder(), small)
  await store.write([{ key: 'a', value: '1' }], markAt(1))
  const snapshot = await store.snapshot()
  await store.close()
  const read = async (): Promise<void> => {
    for await (const chunk of snapshot.chunks()) expect(chunk).toBeInstanceOf(Uint8Array)
  }
  await expect(read()).rejects.toMatchObject({ code: 'CLOSED' })
})
