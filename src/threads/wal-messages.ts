import type { MessagePort } from 'node:worker_threads'

import type { HardState, Index, Position } from '../raft/types.ts'
import type { LogOptions } from '../store/log/open-log.ts'
import type { LogRepair } from '../store/log/repair-log.ts'
import type { DiskVitals } from '../ports/stats.ts'

/** Data that the log's thread is started with. */
export interface WalThreadData {
  readonly dir: string
  readonly options: Omit<LogOptions, 'files'>
  /** Port to the thread of the Raft host. */
  readonly port: MessagePort
}

/**
 * Commands of the Raft thread, in order. Entries are packed (src/raft/entry-codec.ts) in a buffer
 * given away.
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

/** Events to the Raft thread; `opened` comes first, and only once. */
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
  /** Every second. */
  | ({ readonly type: 'vitals' } & DiskVitals)

/** Report to main: what it has to know before the host starts, or why nothing can start. */
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
      /** Without the remedy; that of `StoreError`. */
      readonly finding?: string
    }
