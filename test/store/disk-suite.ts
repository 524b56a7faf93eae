import { expect, test } from 'vitest'
import type { Disk, Entry, RestoredLog } from '../../src/raft/types.ts'
import { entry, someEntries, summary } from './support/entries.ts'

export interface OpenedDisk {
  readonly disk: Disk
  readonly restored: RestoredLog
  /** Makes all writes durable and reports them. */
  settle(): Promise<void>
  /** Closes the disk in order and restarts it. */
  restart(): Promise<OpenedDisk>
  /** Loses all writes that are not durable, and restarts. */
  crash(): Promise<OpenedDisk>
}

function tokensOf(disk: Disk): number[] {
  const tokens: number[] = []
  disk.onDurable = (token) => tokens.push(token)
  return tokens
}

function write(
  disk: Disk,
  token: number,
  entries: readonly Entry[],
  options: { term?: number; votedFor?: string | null; commit?: number } = {},
): void {
  const { term, votedFor = null, commit = 0 } = options
  const hardState = term === undefined ? null : { term, votedFor }
  disk.write({ token, hardState, entries, commit })
}

/** Behavior required of every disk of the consensus core. */
export function diskSuite(name: string, open: (entries: readonly Entry[]) => Promise<OpenedDisk>) {
  test(`${name}: a formed log starts with its entries as committed, and with the boot number 1`, async () => {
    const entries = someEntries(1, 2)
    const { restored, disk } = await open(entries)
    expect(restored).toEqual({
      hardState: { term: 1, votedFor: null },
      base: { term: 0, index: 0 },
      entries,
      commit: 2,
      boot: 1,
      owed: null,
    })
    await disk.close()
  })

  test(`${name}: an empty log has no entries at its start`, async () => {
    const { restored, disk } = await open([])
    expect(summary(restored.entries)).toEqual(summary([]))
    expect(restored.hardState).toEqual({ term: 0, votedFor: null })
    await disk.close()
  })

  test(`${name}: write tokens are reported in order, and only once the writes are durable`, async () => {
    const opened = await open([])
    const tokens = tokensOf(opened.disk)
    write(opened.disk, 1, [entry(1)], { term: 1 })
    write(opened.disk, 2, [])
    write(opened.disk, 3, someEntries(2, 3))
    expect(tokens).toEqual([])
    await opened.settle()
    expect(tokens).toEqual([1, 2, 3])
    await opened.disk.close()
  })

  test(`${name}: writes that were reported as durable survive a crash, with entries of every type and size`, async () => {
    const opened = await open([])
    const tokens = tokensOf(opened.disk)
    const entries: Entry[] = [
      { index: 1, term: 3, timeMs: 5, type: 'noop', data: new Uint8Array(0) },
      { index: 2, term: 3, timeMs: 5, type: 'configuration', data: new Uint8Array([1, 2, 3]) },
      entry(3, 3, 1),
      entry(4, 3, 30_000),
      entry(5, 4, 7),
    ]
    write(opened.disk, 9, entries, { term: 4, votedFor: 'ctrl2' })
    await opened.settle()
    expect(tokens).toEqual([9])
    const { restored, disk } = await opened.crash()
    expect(summary(restored.entries)).toEqual(summary(entries))
    expect(restored.hardState).toEqual({ term: 4, votedFor: 'ctrl2' })
    expect(restored.boot).toBe(2)
    await disk.close()
  })

  test(`${name}: the record of a missing tail survives restarts until it is changed or cleared`, async () => {
    let opened = await open(someEntries(1, 2))
    opened.disk.settle({ term: 4, index: 9 })
    await opened.settle()
    opened = await opened.crash()
    expect(opened.restored.owed).toEqual({ term: 4, index: 9 })
    opened.disk.settle({ term: 4, index: 5 })
    opened = await opened.restart()
    expect(opened.restored.owed).toEqual({ term: 4, index: 5 })
    opened.disk.settle(null)
    opened = await opened.restart()
    expect(opened.restored.owed).toBeNull()
    await opened.disk.close()
  })

  test(`${name}: term and vote are stored together, and the newest pair takes precedence`, async () => {
    let opened = await open([])
    for (const [term, votedFor] of [
      [1, 'a'],
      [2, null],
      [2, 'b'],
    ] as const) {
      write(opened.disk, term, [], { term, votedFor })
      await opened.settle()
      opened = await opened.crash()
      expect(opened.restored.hardState).toEqual({ term, votedFor })
    }
    await opened.disk.close()
  })

  test(`${name}: a written entry whose index is already in the log replaces all entries from that index on`, async () => {
    const opened = await open([])
    write(opened.disk, 1, someEntries(1, 10))
    await opened.settle()
    write(opened.disk, 2, someEntries(6, 2, 2))
    write(opened.disk, 3, someEntries(7, 1, 3))
    await opened.settle()
    const expected = [...someEntries(1, 5), entry(6, 2), entry(7, 3)]
    const again = await opened.crash()
    expect(summary(again.restored.entries)).toEqual(summary(expected))
    write(again.disk, 4, someEntries(8, 2, 3))
    await again.settle()
    const last = await again.crash()
    expect(summary(last.restored.entries)).toEqual(summary([...expected, ...someEntries(8, 2, 3)]))
    await last.disk.close()
  })

  test(`${name}: entries that are replaced in the event loop turn in which they were written do not appear in the log`, async () => {
    const opened = await open([])
    write(opened.disk, 1, someEntries(1, 5))
    write(opened.disk, 2, someEntries(3, 1, 2))
    await opened.settle()
    const { restored, disk } = await opened.crash()
    expect(summary(restored.entries)).toEqual(summary([...someEntries(1, 2), entry(3, 2)]))
    await disk.close()
  })

  test(`${name}: a replacement of many large entries survives a restart, also after compaction`, async () => {
    let opened = await open([])
    for (let index = 1; index <= 30; index += 1) {
      write(opened.disk, index, [entry(index, 1, 3000)])
      await opened.settle()
    }
    write(opened.disk, 31, someEntries(4, 20, 2, 3000), { commit: 3 })
    await opened.settle()
    const expected = [...someEntries(1, 3, 1, 3000), ...someEntries(4, 20, 2, 3000)]
    opened = await opened.crash()
    expect(summary(opened.restored.entries)).toEqual(summary(expected))
    for (const index of [4, 12, 20]) {
      write(opened.disk, index, [], { commit: index })
      opened.disk.compact({ term: 2, index })
      await opened.settle()
      opened = await opened.crash()
      const { base, entries } = opened.restored
      expect(base.index).toBeLessThanOrEqual(index)
      expect(summary(entries)).toEqual(summary(expected.slice(base.index)))
      expect(base.term).toBe(base.index === 0 ? 0 : expected[base.index - 1]?.term)
    }
    await opened.disk.close()
  })

  test(`${name}: the stored commit index never exceeds the log and never decreases`, async () => {
    const opened = await open(someEntries(1, 2))
    write(opened.disk, 1, someEntries(3, 2), { commit: 100 })
    await opened.settle()
    const again = await opened.restart()
    expect(again.restored.commit).toBe(4)
    write(again.disk, 2, [], { commit: 1 })
    await again.settle()
    const last = await again.restart()
    expect(last.restored.commit).toBe(4)
    await last.disk.close()
  })

  test(`${name}: replacing a committed entry fails an assertion`, async () => {
    const opened = await open(someEntries(1, 3))
    opened.disk.onFailed = () => {}
    const replace = async (): Promise<void> => {
      write(opened.disk, 1, someEntries(3, 1, 2))
      await opened.settle()
    }
    await expect(replace()).rejects.toThrow('a committed entry is never replaced')
    await opened.disk.close()
  })

  test(`${name}: compaction keeps every entry after the compaction position`, async () => {
    let opened = await open([])
    for (let index = 1; index <= 40; index += 1) {
      write(opened.disk, index, [entry(index, 1, 2000)], { commit: index })
      await opened.settle()
    }
    opened.disk.compact({ term: 1, index: 33 })
    await opened.settle()
    opened = await opened.crash()
    const { base, entries } = opened.restored
    expect(base.index).toBeGreaterThan(20)
    expect(base.index).toBeLessThanOrEqual(33)
    expect(base.term).toBe(1)
    expect(summary(entries)).toEqual(summary(someEntries(base.index + 1, 40 - base.index, 1, 2000)))
    write(opened.disk, 1, [entry(41)])
    await opened.settle()
    opened = await opened.crash()
    expect(opened.restored.entries.at(-1)).toEqual(entry(41))
    await opened.disk.close()
  })

  test(`${name}: a reset leaves an empty log that continues after the reset position`, async () => {
    let opened = await open(someEntries(1, 5))
    const tokens = tokensOf(opened.disk)
    write(opened.disk, 1, someEntries(6, 3))
    opened.disk.reset({ term: 7, index: 1000 }, 2)
    write(opened.disk, 3, someEntries(1001, 2, 8), { term: 8, commit: 1001 })
    await opened.settle()
    expect(tokens).toEqual([1, 2, 3])
    opened = await opened.crash()
    expect(opened.restored).toMatchObject({
      hardState: { term: 8, votedFor: null },
      base: { term: 7, index: 1000 },
      entries: someEntries(1001, 2, 8),
    })
    expect(opened.restored.commit).toBeGreaterThanOrEqual(1000)
    opened.disk.reset({ term: 9, index: 2000 }, 1)
    await opened.settle()
    opened = await opened.crash()
    expect(opened.restored).toMatchObject({ base: { term: 9, index: 2000 }, entries: [], boot: 3 })
    await opened.disk.close()
  })

  test(`${name}: closing the log makes all writes durable, and each start increases the boot number by one`, async () => {
    let opened = await open([])
    write(opened.disk, 1, someEntries(1, 3))
    for (let boot = 2; boot < 6; boot += 1) {
      opened = await opened.restart()
      expect(opened.restored.boot).toBe(boot)
      expect(summary(opened.restored.entries)).toEqual(summary(someEntries(1, 3)))
    }
    await opened.disk.close()
  })
}
