// Runs as a worker thread: opens the log with plain options, appends one entry and reports what it
// found.
import { parentPort, workerData } from 'node:worker_threads'
import { openLog, type LogOptions } from '../../../src/store/log/open-log.ts'
import { entry } from './entries.ts'

const { dir, options } = workerData as { dir: string; options: LogOptions }
const { disk, restored } = openLog(dir, options)
const next = restored.base.index + restored.entries.length + 1
disk.onDurable = (token) => {
  disk.closeNow()
  parentPort?.postMessage({ token, boot: restored.boot, count: restored.entries.length })
}
disk.write({ token: 7, hardState: null, entries: [entry(next)], commit: 0 })
