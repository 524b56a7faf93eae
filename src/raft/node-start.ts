import type { Clock } from '../lib/clock.ts'
import type { Core } from './core.ts'
import type { CoreStatus, ProposalResult } from './effects.ts'
import type { Disk, Entry, NodeId, Position, Transport } from './types.ts'

export interface RaftNodeLimits {
  readonly tickMs: number
  /** Maximum messages that wait for the next turn; more are dropped, as on a lossy network. */
  readonly inboxMessagesMax: number
  readonly inboxBytesMax: number
  /** Maximum proposals that wait for the next turn; more are refused with OVERLOADED. */
  readonly inboxProposalsMax: number
  /** Maximum answers that wait for the disk; further ones are dropped. */
  readonly gatedMessagesMax: number
}

export const defaultRaftNodeLimits: RaftNodeLimits = {
  tickMs: 50,
  inboxMessagesMax: 16_384,
  inboxBytesMax: 128 * 1024 * 1024,
  inboxProposalsMax: 65_536,
  gatedMessagesMax: 16_384,
}

/** Runs turns: on the event loop in a program, or in virtual time in a simulation. */
export interface Scheduler {
  /** Runs `task` once, soon, after all other events that are already pending. */
  soon(task: () => void): void
  /**
   * Runs `task` once, after `delayMs`.
   * @returns a function that cancels it.
   */
  after(delayMs: number, task: () => void): () => void
}

/**
 * The node calls all of them except onRestore within a turn, so they must not block. An error
 * thrown by one of them stops the node.
 */
export interface RaftNodeCallbacks {
  /**
   * Receives entries that are committed and durable on this node, in index order, without gaps,
   * each once. Answer with `applied`.
   */
  onCommitted(entries: readonly Entry[]): void
  /** Result of each proposal, by its id: accepted at (index, term), or refused before logging. */
  onProposals(results: readonly ProposalResult[]): void
  /** Role, term, leader or configuration changed; also called once at start. */
  onStatus(status: CoreStatus): void
  /**
   * Peer `to` needs a snapshot. The receiver must always answer with snapshotSent or
   * snapshotFailed.
   */
  onSendSnapshot(to: NodeId): void
  /**
   * The core accepted the snapshot received for `position`. Resolve once it is durably the live
   * state; the log is reset after that. Entries handed to onCommitted before this call are older
   * than `position`, later ones follow it.
   */
  onRestore(position: Position, configuration: Uint8Array): PromiseLike<void>
  /**
   * Called once. The node has stopped and the process must exit; the next start repairs what it
   * can.
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
