import { flushCompileCache } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'

import { periodicScheduler } from '../lib/periodic-scheduler.ts'
import { requirePresent } from '../lib/assert.ts'
import { releaseBuffer } from '../lib/bounds/release-buffer.ts'
import { decodeEntries, encodeEntries } from '../raft/entry-codec.ts'
import type { FileDisk } from '../store/log/file-disk.ts'
import { openLog } from '../store/log/open-log.ts'
import { StoreError } from '../store/errors.ts'
import { nodeFileSystem } from '../store/file-system.ts'
import { MeasuredFileSystem } from '../store/log/measured-file-system.ts'
import { systemClock } from '../lib/clock.ts'
import { MessagePortLink } from './message-port-link.ts'
import type { WalCommand, WalEvent, WalReport, WalThreadData } from './wal-messages.ts'

// Program of the WAL thread. Its writes and syncs block, so nothing else runs in this thread.

const { dir, options, port } = workerData as WalThreadData
const main = requirePresent(parentPort, 'this file runs as the wal thread')
const raft = new MessagePortLink<WalCommand, WalEvent>(port)
const timed = new MeasuredFileSystem(nodeFileSystem, systemClock)
const VITALS_MS = 1000

function report(message: WalReport): void {
  main.postMessage(message)
}

function open(): FileDisk | null {
  try {
    const opened = openLog(dir, { ...options, files: timed.files })
    const { restored, disk, cutBytes, committedIndex, repair } = opened
    const entries = encodeEntries(restored.entries)
    raft.post({ type: 'opened', ...restored, entries }, [entries.buffer])
    report({ type: 'opened', boot: restored.boot, cutBytes, committedIndex, repair })
    return disk
  } catch (error) {
    const reason = error instanceof Error ? error.message : ''
    const known = error instanceof StoreError ? { code: error.code, finding: error.finding } : null
    report({ type: 'refused', reason, ...(known ?? { code: '' }) })
    raft.close()
    return null
  }
}

function serve(disk: FileDisk): void {
  disk.onDurable = (token) => raft.post({ type: 'durable', token })
  const stopVitals = periodicScheduler.every(VITALS_MS, () => {
    raft.post({ type: 'vitals', ...timed.vitals(dir) })
  })
  disk.onFailed = (error) => raft.post({ type: 'failed', reason: error.message })
  raft.onMessage = (command) => {
    switch (command.type) {
      case 'write': {
        const { token, hardState, commit } = command
        disk.write({ token, hardState, entries: decodeEntries(command.entries), commit })
        // The buffer can be released, because the disk has copied the entries into another buffer.
        releaseBuffer(command.entries)
        break
      }
      case 'compact':
        disk.compact(command.position)
        break
      case 'reset':
        disk.reset(command.position, command.token)
        break
      case 'settle':
        disk.settle(command.owed)
        break
      case 'close':
        stopVitals()
        void disk.close().finally(() => {
          raft.post({ type: 'closed' })
          raft.close()
        })
        break
    }
  }
}

const disk = open()
if (disk !== null) serve(disk)

// The cache is flushed here, because the process may kill the thread later. With the cache, the
// next start needs no compilation.
flushCompileCache()
