/**
 * Measures the time and memory that a controller needs to open its log at a start: the program
 * writes a log of 1 GiB (by default) and opens it in a separate process. `node bench/recovery.ts
 * [--mib 1024] [--folder FOLDER]`.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import type { Entry } from '../src/raft/types.ts'
import { createDataFolder } from '../src/store/folder/create-data-folder.ts'
import { openLog } from '../src/store/log/open-log.ts'
import { recordByteLength } from '../src/store/log/wal-format.ts'
import { heading } from './support/report.ts'

const MIB = 1024 * 1024
const BATCH_BYTES = MIB

interface Opened {
  readonly entries: number
  readonly openedMs: number
  /** Processor time, because other processes use the machine too. */
  readonly busyMs: number
  readonly rssBytes: number
  readonly rssBytesMax: number
}

/** Writes a log. @returns its number of entries. */
function writeLog(dir: string, bytes: number, bodyBytes: number): number {
  const storeId = new Uint8Array(16).fill(1)
  const identity = { nodeId: 'bench', storeId, clusterId: 'bench', generation: 1 }
  createDataFolder(dir, { ...identity, entries: [] }, { freeBytesMin: 0 })
  const { disk } = openLog(dir, { freeBytesMin: 0 })
  const data = new Uint8Array(bodyBytes).fill(7)
  const batchEntries = Math.max(1, Math.floor(BATCH_BYTES / recordByteLength(bodyBytes)))
  let index = 0
  for (let written = 0; written < bytes; written += batchEntries * recordByteLength(bodyBytes)) {
    const entries: Entry[] = []
    for (let count = 0; count < batchEntries; count += 1) {
      index += 1
      entries.push({ index, term: 1, timeMs: index, type: 'command', data })
    }
    disk.write({ token: index, hardState: null, entries, commit: index - batchEntries })
    disk.flush()
    if (disk.failure !== null) throw disk.failure
  }
  disk.closeNow()
  return index
}

/**
 * Opens the log in this process, which has done nothing else, so that its memory is that of the
 * log.
 */
function open(dir: string): Opened {
  const rssBefore = process.memoryUsage.rss()
  const begin = performance.now()
  const busyBefore = process.cpuUsage()
  const { restored, disk } = openLog(dir, { freeBytesMin: 0 })
  const openedMs = performance.now() - begin
  const busy = process.cpuUsage(busyBefore)
  const busyMs = (busy.user + busy.system) / 1000
  const rssBytesMax = process.resourceUsage().maxRSS * 1024 - rssBefore
  globalThis.gc?.()
  const rssBytes = process.memoryUsage.rss() - rssBefore
  disk.closeNow()
  return { entries: restored.entries.length, openedMs, busyMs, rssBytes, rssBytesMax }
}

function measure(folder: string, bytes: number, bodyBytes: number): void {
  const dir = join(mkdtempSync(join(folder, 'flotilla-bench-recovery-')), 'data')
  try {
    const entries = writeLog(dir, bytes, bodyBytes)
    const child = spawnSync(
      process.execPath,
      ['--expose-gc', import.meta.filename, '--open', dir],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
    )
    if (child.status !== 0) throw new Error(`the process that opens the log ended: ${child.status}`)
    const opened = JSON.parse(child.stdout) as Opened
    if (opened.entries !== entries) throw new Error(`${opened.entries} of ${entries} entries found`)
    const speed = (ms: number): string =>
      `${(ms / 1000).toFixed(2)} s, ${(bytes / MIB / (ms / 1000)).toFixed(0)} MiB/s`
    const ofLog = (count: number): string =>
      `${(count / MIB).toFixed(0)} MiB (${(count / bytes).toFixed(2)} x the log)`
    console.log(
      [
        `${entries.toLocaleString('en')} entries of ${bodyBytes} B:`,
        `  opened in ${speed(opened.openedMs)}; of the processor's time in ${speed(opened.busyMs)}`,
        `  memory at its peak ${ofLog(opened.rssBytesMax)}, afterwards ${ofLog(opened.rssBytes)}`,
      ].join('\n'),
    )
  } finally {
    rmSync(join(dir, '..'), { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      mib: { type: 'string', default: '1024' },
      folder: { type: 'string', default: tmpdir() },
      open: { type: 'string' },
    },
  })
  if (values.open !== undefined) {
    console.log(JSON.stringify(open(values.open)))
  } else {
    const mib = Number(values.mib)
    console.log(heading(`Start with a log of ${mib} MiB, in the system's cache`))
    for (const bodyBytes of [300, 4096, 64 * 1024]) measure(values.folder, mib * MIB, bodyBytes)
  }
}
