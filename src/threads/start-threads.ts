import { setFlagsFromString } from 'node:v8'
import { MessageChannel, Worker } from 'node:worker_threads'

import type { ConsensusOptions } from '../cluster/consensus-options.ts'
import { ConsensusThread } from '../cluster/replication/consensus-thread.ts'
import {
  type ConsensusThreadCommand,
  type ConsensusThreadEvent,
  createSameThreadChannel,
  type MainThreadLink,
} from '../cluster/thread-channel.ts'
import type { DiskStats } from '../ports/stats.ts'
import { systemClock } from '../lib/clock.ts'
import type { Index } from '../raft/types.ts'
import { StoreError, type StoreErrorCode } from '../store/errors.ts'
import { type LogOptions, openLog } from '../store/log/open-log.ts'
import { nodeFileSystem } from '../store/file-system.ts'
import type { LogRepair } from '../store/log/repair-log.ts'
import { MeasuredFileSystem } from '../store/log/measured-file-system.ts'
import { MessagePortLink } from './message-port-link.ts'
import type { RaftThreadData } from './raft-thread.ts'
import type { WalReport, WalThreadData } from './wal-messages.ts'
import { threadProgramUrl } from './thread-file.ts'

export interface LogAndConsensusStart {
  /** An existing data folder, whose lock the caller holds. */
  readonly dir: string
  readonly log: Omit<LogOptions, 'files'>
  readonly host: ConsensusOptions
}

export interface StartedLogAndConsensus {
  /**
   * The main thread's side of the link, for the ClusterNode. `ClusterNode.start` also makes the
   * other side (the thread with log and consensus) start.
   */
  readonly link: MainThreadLink
  /** Number of starts of this store; part of the origin of every command. */
  readonly boot: number
  /** Bytes of a torn write that recovery removed from the end of the log. */
  readonly cutBytes: number
  /**
   * Commit index that this member had recorded before the start, even if entries up to it are lost.
   */
  readonly committedIndex: Index
  /** Repair of the log; null when there was no damage. */
  readonly repair: LogRepair | null
  /**
   * Resolves when log and consensus have stopped. Call it after `ClusterNode.stop`, or after a
   * failure of the ClusterNode.
   */
  close(): Promise<void>
}

/**
 * Starts log and consensus in the calling thread; for debugging, and for machines with at most one
 * spare core.
 * @throws {StoreError} when the log cannot be opened.
 */
export function startInCallingThread(start: LogAndConsensusStart): StartedLogAndConsensus {
  const timed = new MeasuredFileSystem(nodeFileSystem, systemClock)
  const opened = openLog(start.dir, { ...start.log, files: timed.files })
  const { restored, disk, cutBytes, committedIndex, repair } = opened
  const { boot } = restored
  const { main, host } = createSameThreadChannel()
  const diskVitals = (): DiskStats => timed.vitals(start.dir)
  new ConsensusThread(start.host, { link: host, disk, restored, clock: systemClock, diskVitals })
  const close = (): Promise<void> => Promise.resolve()
  return { link: main, boot, cutBytes, committedIndex, repair, close }
}

/**
 * Starts log and consensus in separate threads. If a thread dies, the link delivers a `fatal` event
 * with the reason.
 * @throws {StoreError} when the log cannot be opened; no thread runs then.
 */
export async function startThreads(start: LogAndConsensusStart): Promise<StartedLogAndConsensus> {
  const toRaft = new MessageChannel()
  const toWal = new MessageChannel()
  const walData: WalThreadData = { dir: start.dir, options: start.log, port: toWal.port1 }
  const raftData: RaftThreadData = {
    host: start.host,
    mainPort: toRaft.port1,
    walPort: toWal.port2,
  }
  const wal = spawn('wal', threadProgramUrl('wal'), walData, [toWal.port1])
  const report = await firstReport(wal)
  if (report.type === 'refused') {
    await wal.terminate()
    const { code, reason, finding } = report
    throw new StoreError(code as StoreErrorCode, start.dir, reason, undefined, finding)
  }
  const raft = spawn('raft', threadProgramUrl('raft'), raftData, [toRaft.port1, toWal.port2])
  const link = new WatchedLink(toRaft.port2, wal, raft)
  const close = async (): Promise<void> => {
    await Promise.all([raft.terminate(), wal.terminate()])
    link.close()
  }
  const { boot, cutBytes, committedIndex, repair } = report
  return { link, boot, cutBytes, committedIndex, repair, close }
}

/**
 * Size of a semi-space in V8's young generation. Messages between threads leave garbage outside the
 * heap, whose size V8 does not know. V8 collects a small young generation sooner, which frees that
 * memory.
 */
const SEMI_SPACE_MEGABYTES_MAX = 2

function spawn(
  name: string,
  file: URL,
  data: WalThreadData | RaftThreadData,
  transferList: MessagePort[],
): Worker {
  // The size is set as a flag at run time, because an option on the process's command line would
  // override `resourceLimits`. The current thread does not change, because its heap is already
  // allocated.
  setFlagsFromString(`--max-semi-space-size=${SEMI_SPACE_MEGABYTES_MAX}`)
  return new Worker(file, { name, workerData: data, transferList })
}

type MessagePort = MessageChannel['port1']

async function firstReport(wal: Worker): Promise<WalReport> {
  return await new Promise((resolve, reject) => {
    const onExit = (): void =>
      reject(new Error('the log thread ended before it had opened the log'))
    wal.once('error', reject)
    wal.once('exit', onExit)
    wal.once('message', (report: WalReport) => {
      wal.off('error', reject)
      wal.off('exit', onExit)
      resolve(report)
    })
  })
}

/**
 * The link to the thread with log and consensus. It also reports when the log thread or the
 * consensus thread stops.
 */
class WatchedLink extends MessagePortLink<ConsensusThreadEvent, ConsensusThreadCommand> {
  #isStopping = false
  #isOver = false

  constructor(port: MessagePort, log: Worker, consensus: Worker) {
    super(port)
    for (const [name, worker] of [
      ['log', log],
      ['consensus', consensus],
    ] as const) {
      worker.on('error', (error) => this.#onEnd(name, `has failed: ${String(error)}`))
      worker.on('exit', (code) => this.#onEnd(name, `has ended with code ${code}`))
    }
  }

  override post(message: ConsensusThreadCommand, transfer?: readonly ArrayBuffer[]): void {
    if (message.type === 'stop') this.#isStopping = true
    super.post(message, transfer)
  }

  override close(): void {
    this.#isOver = true
    super.close()
  }

  #onEnd(name: 'log' | 'consensus', how: string): void {
    if (this.#isOver) return
    if (!this.#isStopping) {
      this.#isOver = true
      this.deliver({ type: 'fatal', reason: `the ${name} thread ${how}` })
    } else if (name === 'consensus') {
      // The event is delivered here, because the thread may have stopped without sending it, and
      // callers that wait for `stopped` must not wait forever.
      this.deliver({ type: 'stopped' })
    }
  }
}
