/**
 * Measures entries per second of the write-ahead log on the disk of this machine, for several
 * numbers of entries that share one sync, compared with a plain write and sync of the same bytes.
 * Prints minimum, median and maximum over several rounds. `node bench/wal.ts [FOLDER]`.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Entry } from '../src/raft/types.ts'
import { createDataFolder } from '../src/store/folder/create-data-folder.ts'
import { openLog } from '../src/store/log/open-log.ts'
import { recordByteLength } from '../src/store/log/wal-format.ts'

export interface WalBenchOptions {
  readonly folder: string
  readonly batchSizes: readonly number[]
  readonly bodyBytes: number
  readonly rounds: number
  /** Duration of one round with one batch size. */
  readonly roundMs: number
}

export interface WalBenchRow {
  readonly batchSize: number
  /** Entries per second of each round, in ascending order. */
  readonly perSecond: readonly number[]
  /**
   * Entries per second with a plain write and fdatasync of the same bytes, to a file that was
   * filled before.
   */
  readonly barePerSecond: readonly number[]
}

function measure(roundMs: number, batchSize: number, step: () => void): number {
  const begin = performance.now()
  let entries = 0
  let elapsedMs = 0
  while (elapsedMs < roundMs) {
    step()
    entries += batchSize
    elapsedMs = performance.now() - begin
  }
  return (entries / elapsedMs) * 1000
}

function benchLog(dir: string, options: WalBenchOptions, batchSize: number): number {
  const { disk, restored } = openLog(dir, { freeBytesMin: 0 })
  const data = new Uint8Array(options.bodyBytes).fill(7)
  let index = restored.base.index + restored.entries.length
  let durable = 0
  disk.onDurable = (token) => {
    durable = token
  }
  const perSecond = measure(options.roundMs, batchSize, () => {
    for (let count = 0; count < batchSize; count += 1) {
      index += 1
      const entry: Entry = { index, term: 1, timeMs: index, type: 'command', data }
      disk.write({ token: index, hardState: null, entries: [entry], commit: index - 1 })
    }
    disk.flush()
    if (durable !== index) throw disk.failure ?? new Error('a write was not reported durable')
  })
  disk.compact({ term: 1, index })
  disk.closeNow()
  return perSecond
}

function benchBare(dir: string, options: WalBenchOptions, batchSize: number): number {
  const path = join(dir, 'bare')
  const bytes = new Uint8Array(recordByteLength(options.bodyBytes) * batchSize).fill(7)
  const fileBytes = 16 * 1024 * 1024
  const fd = openSync(path, 'w')
  writeSync(fd, new Uint8Array(fileBytes))
  fdatasyncSync(fd)
  let at = 0
  const perSecond = measure(options.roundMs, batchSize, () => {
    if (at + bytes.length > fileBytes) at = 0
    writeSync(fd, bytes, 0, bytes.length, at)
    fdatasyncSync(fd)
    at += bytes.length
  })
  closeSync(fd)
  rmSync(path)
  return perSecond
}

export function benchWal(options: WalBenchOptions): WalBenchRow[] {
  const folder = mkdtempSync(join(options.folder, 'flotilla-bench-wal-'))
  const dir = join(folder, 'data')
  const storeId = new Uint8Array(16).fill(1)
  const identity = { nodeId: 'bench', storeId, clusterId: 'bench', generation: 1 }
  try {
    createDataFolder(dir, { ...identity, entries: [] }, { freeBytesMin: 0 })
    return options.batchSizes.map((batchSize) => {
      const perSecond: number[] = []
      const barePerSecond: number[] = []
      for (let round = 0; round < options.rounds; round += 1) {
        perSecond.push(benchLog(dir, options, batchSize))
        barePerSecond.push(benchBare(folder, options, batchSize))
      }
      const ascending = (a: number, b: number): number => a - b
      perSecond.sort(ascending)
      barePerSecond.sort(ascending)
      return { batchSize, perSecond, barePerSecond }
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function threeNumbers(sorted: readonly number[]): string {
  const picked = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)]
  return picked.map((value) => Math.round(value ?? 0).toLocaleString('en')).join(' / ')
}

if (import.meta.main) {
  const folder = process.argv[2] ?? tmpdir()
  const batchSizes = [1, 8, 64, 256]
  const rows = benchWal({ folder, batchSizes, bodyBytes: 300, rounds: 5, roundMs: 1000 })
  console.log(`entries of 300 B per second in ${folder}: min / median / max of 5 rounds`)
  for (const { batchSize, perSecond, barePerSecond } of rows) {
    const name = `${batchSize} a sync`.padEnd(12)
    console.log(`${name} log ${threeNumbers(perSecond)}   bare ${threeNumbers(barePerSecond)}`)
  }
}
