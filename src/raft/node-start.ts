import type { Clock } from '../lib/clock.ts'
import type { Core } from './core.ts'
import type { CoreStatus, ProposalResult } from './effects.ts'
import type { Disk, Entry, NodeId, Position, Transport } from './types.ts'

export interface RaftNodeLimits {
  readonly tickMs: number
  /** Waiting for the next turn; beyond it messages are dropped, as a lossy network would. */
  readonly inboxMessagesMax: number
  readonly inboxBytesMax: number
  /** Waiting for the next turn; beyond it proposals are refused OVERLOADED. */
  readonly inboxProposalsMax: number
  /** Answers that wait for the disk; beyond it new ones are dropped. */
  readonly gatedMessagesMax: number
}

export const defaultRaftNodeLimits: RaftNodeLimits = {
  tickMs: 50,
  inboxMessagesMax: 16_384,
  inboxBytesMax: 128 * 1024 * 1024,
  inboxProposalsMax: 65_536,
  gatedMessagesMax: 16_384,
}

/** When turns run: the event loop's in a program, virtual time's in a simulation. */
export interface Scheduler {
  /** Runs `task` once, soon, after whatever else has arrived meanwhile. */
  soon(task: () => void): void
  /** Runs `task` once, after `delayMs`. @returns what cancels it. */
  after(delayMs: number, task: () => void): () => void
}

/**
 * All but onRestore are called within a turn and must not wait; what they throw is fatal to the
 * node.
 */
export interface RaftNodeCallbacks {
  /**
   * Takes entries in index order, without gaps, each once; durable here and committed. Answer with
   * `applied`.
   */
  onCommitted(entries: readonly Entry[]): void
  /**
   * The fate of `propose`d proposals, by their ids: accepted at (index, term), or refused before
   * logging.
   */
  onProposals(results: readonly ProposalResult[]): void
  /** Role, term, leader or configuration moved; also once at start. */
  onStatus(status: CoreStatus): void
  /** `to` needs a snapshot. Answer with snapshotSent or snapshotFailed, always. */
  onSendSnapshot(to: NodeId): void
  /**
   * The snapshot received for `position` is taken: resolve once it is the live state, durably. The
   * log is reset after that. Entries handed to onCommitted before this call are older than
   * `position`, those after it follow it.
   */
  onRestore(position: Position, configuration: Uint8Array): PromiseLike<void>
  /**
   * Once. The node does nothing any more and the process must stop: a later start repairs what can
   * be repaired.
   */
  onFatal(error: Error): void
}

export interface RaftNodeStart {
  readonly core: Core
  readonly disk: Disk
  readonly transport: Transport
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly limits: RaftNodeLimits
  readonly callbacks: RaftNodeCallbacks
}
