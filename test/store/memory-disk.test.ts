import { expect, test } from 'vitest'
import { MemoryDisk } from '../support/memory-disk.ts'
import type { RestoredLog } from '../../src/raft/types.ts'
import { diskSuite, type OpenedDisk } from './disk-suite.ts'
import { entry, someEntries } from './support/entries.ts'

function harness({ disk, restored }: { disk: MemoryDisk; restored: RestoredLog }): OpenedDisk {
  return {
    disk,
    restored,
    settle: async () => disk.sync(),
    restart: async () => {
      await disk.close()
      return harness(disk.reopen())
    },
    crash: async () => {
      disk.crash()
      return harness(disk.reopen())
    },
  }
}

diskSuite('memory disk', async (entries) => harness(MemoryDisk.form({ entries, sync: 'manual' })))

test('the simulated memory disk keeps synced writes in a crash, and loses unsynced ones', () => {
  const { disk } = MemoryDisk.form({ sync: 'manual' })
  const tokens: number[] = []
  disk.onDurable = (token) => tokens.push(token)
  for (let index = 1; index <= 3; index += 1) {
    disk.write({ token: index, hardState: null, entries: [entry(index)], commit: 0 })
  }
  expect(disk.syncNext()).toBe(true)
  expect(disk.pendingCount).toBe(2)
  disk.crash()
  disk.sync()
  expect(tokens).toEqual([1])
  expect(disk.reopen().restored.entries).toEqual(someEntries(1, 1))
})

test('the simulated memory disk reports no write as durable after a failure, and keeps durable writes', () => {
  const { disk } = MemoryDisk.form({ sync: 'manual' })
  const seen: unknown[] = []
  disk.onDurable = (token) => seen.push(token)
  disk.onFailed = (error) => seen.push(error.message)
  disk.write({ token: 1, hardState: null, entries: [entry(1)], commit: 0 })
  disk.sync()
  disk.write({ token: 2, hardState: null, entries: [entry(2)], commit: 0 })
  disk.fail(new Error('worn out'))
  disk.write({ token: 3, hardState: null, entries: [entry(2)], commit: 0 })
  disk.sync()
  expect(seen).toEqual([1, 'worn out'])
  expect(disk.reopen().restored.entries).toEqual(someEntries(1, 1))
})

test('the simulated memory disk syncs by default once at the end of an event loop turn', async () => {
  const { disk } = MemoryDisk.form()
  const tokens = await new Promise<number[]>((resolve) => {
    const seen: number[] = []
    disk.onDurable = (token) => {
      seen.push(token)
      if (token === 2) resolve(seen)
    }
    disk.write({ token: 1, hardState: null, entries: [entry(1)], commit: 0 })
    disk.write({ token: 2, hardState: null, entries: [entry(2)], commit: 0 })
    expect(seen).toEqual([])
  })
  expect(tokens).toEqual([1, 2])
  await disk.close()
})
