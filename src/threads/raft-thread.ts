import { flushCompileCache } from 'node:module'
import { type MessagePort, workerData } from 'node:worker_threads'

import { ConsensusThread } from '../cluster/replication/consensus-thread.ts'
import type { ConsensusOptions } from '../cluster/consensus-options.ts'
import type { ConsensusThreadCommand, ConsensusThreadEvent } from '../cluster/thread-channel.ts'
import { systemClock } from '../lib/clock.ts'
import { errorMessage } from '../lib/error-code.ts'
import { decodeEntries } from '../raft/entry-codec.ts'
import { collectBufferGarbage } from './collect-buffers.ts'
import { DiskProxy } from './disk-proxy.ts'
import { MessagePortLink } from './message-port-link.ts'
import type { WalCommand, WalEvent } from './wal-messages.ts'

// Program of the Raft thread. It runs consensus and mesh, so that heartbeats are sent in time even
// while the API keeps the main thread busy.

export interface RaftThreadData {
  readonly host: ConsensusOptions
  readonly mainPort: MessagePort
  readonly walPort: MessagePort
}

collectBufferGarbage('major', 24 * 1024 * 1024)
const { host, mainPort, walPort } = workerData as RaftThreadData
const wal = new MessagePortLink<WalEvent, WalCommand>(walPort)

wal.onMessage = (event) => {
  if (event.type !== 'opened') return
  const restored = { ...event, entries: decodeEntries(event.entries) }
  const disk = new DiskProxy(wal)
  const link = new MessagePortLink<ConsensusThreadCommand, ConsensusThreadEvent>(mainPort)
  try {
    new ConsensusThread(host, {
      link,
      disk,
      restored,
      clock: systemClock,
      diskVitals: () => disk.vitals,
    })
  } catch (error) {
    link.post({ type: 'fatal', reason: errorMessage(error) })
  }
}

// The cache is flushed here, because the process may kill the thread later. With the cache, the
// next start needs no compilation.
flushCompileCache()
