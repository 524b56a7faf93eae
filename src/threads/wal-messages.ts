import type { MessagePort } from 'node:worker_threads'

import type { HardState, Index, Position } from '../raft/types.ts'
import type { LogOptions } from '../store/log/open-log.ts'
import type { LogRepair } from '../store/log/repair-log.ts'
import type { DiskStats } from '../ports/stats.ts'

/** Start data of the WAL thread. */
export interface WalThreadData {
  readonly dir: string
  readonly options: Omit<LogOptions, 'files'>
  /** Port to the Raft thread. */
  readonly port: MessagePort
}

/**
 * A command from the Raft thread to the WAL thread, which processes commands in the order in which
 * they were sent. Log entries are encoded (src/raft/entry-codec.ts) in a transferred buffer.
 */
export type WalCommand =
  | {
      readonly type: 'write'
      readonly token: number
      readonly hardState: HardState | null
      readonly entries: Uint8Array
      readonly commit: Index
    }
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'reset'; readonly position: Position; readonly token: number }
  | { readonly type: 'settle'; readonly owed: Position | null }
  | { readonly type: 'close' }

/** Events for the Raft thread; `opened` is sent once, before all others. */
export type WalEvent =
  | {
      readonly type: 'opened'
      readonly hardState: HardState
      readonly base: Position
      readonly entries: Uint8Array
      readonly commit: Index
      readonly boot: number
      readonly owed: Position | null
    }
  | { readonly type: 'durable'; readonly token: number }
  | { readonly type: 'failed'; readonly reason: string }
  | { readonly type: 'closed' }
  /** Sent every second. */
  | ({ readonly type: 'vitals' } & DiskStats)

/**
 * Message to the main thread: either the data that it needs before log and consensus start, or the
 * reason why they cannot start.
 */
export type WalReport =
  | {
      readonly type: 'opened'
      readonly boot: number
      readonly cutBytes: number
      readonly committedIndex: Index
      readonly repair: LogRepair | null
    }
  | {
      readonly type: 'refused'
      readonly reason: string
      readonly code: string
      /** `finding` of a `StoreError`: the problem without the remedy. */
      readonly finding?: string
    }
