import type { Clock } from '../lib/clock.ts'
import type { RaftCore } from './core.ts'
import type { CoreStatus, ProposalResult } from './effects.ts'
import type { Disk, Entry, NodeId, Position, Transport } from './types.ts'

export interface RaftNodeLimits {
  /** Interval of the ticks by which the Raft core counts time, ms. */
  readonly tickMs: number
  /**
   * Maximum messages that wait for the next turn of the event loop; the node drops further
   * messages, as a lossy network would.
   */
  readonly inboxMessagesMax: number
  /**
   * Maximum bytes of the messages that wait for the next turn of the event loop; the node drops
   * further messages.
   */
  readonly inboxBytesMax: number
  /**
   * Maximum proposals that wait for the next turn of the event loop; the node refuses further
   * proposals with OVERLOADED.
   */
  readonly inboxProposalsMax: number
  /** Maximum messages that wait until a write is durable; the node drops further messages. */
  readonly gatedMessagesMax: number
}

export const defaultRaftNodeLimits: RaftNodeLimits = {
  tickMs: 50,
  inboxMessagesMax: 16_384,
  inboxBytesMax: 128 * 1024 * 1024,
  inboxProposalsMax: 65_536,
  gatedMessagesMax: 16_384,
}

/**
 * Runs the turns of a node: on the event loop in the real program, or in virtual time in a
 * simulation.
 */
export interface Scheduler {
  /** Runs `task` once, as soon as all events that are already pending are handled. */
  soon(task: () => void): void
  /**
   * Runs `task` once, after `delayMs`.
   * @returns a function that cancels it.
   */
  after(delayMs: number, task: () => void): () => void
}

/**
 * Callbacks of a node. They must not block, because the node calls nearly all of them within a
 * turn. If a callback throws within a turn, the node stops.
 */
export interface RaftNodeCallbacks {
  /**
   * Receives entries that are committed and durable on this node: in index order, each once, and
   * without gaps except for the entries that a snapshot replaces (`onRestore`). The receiver calls
   * `applied` after it has applied them.
   */
  onCommitted(entries: readonly Entry[]): void
  /**
   * Result of each proposal, by proposal id: accepted at (index, term), or refused before logging.
   */
  onProposals(results: readonly ProposalResult[]): void
  /**
   * Called when role, term, leader or configuration changed, when a configuration was committed,
   * and once at start.
   */
  onStatus(status: CoreStatus): void
  /**
   * Peer `to` needs a snapshot. The callee must always call snapshotSent or snapshotFailed later.
   */
  onSendSnapshot(to: NodeId): void
  /**
   * The Raft core accepted the snapshot received for `position`. The promise must resolve once the
   * snapshot is durably the current state; the node then resets the log. Entries passed to
   * onCommitted before this call are older than `position`; later ones are newer.
   */
  onRestore(position: Position, configuration: Uint8Array): PromiseLike<void>
  /**
   * Called at most once: the node has stopped because of an error, and the process must exit. The
   * next start repairs the node as far as possible.
   */
  onFatal(error: Error): void
}

export interface RaftNodeStart {
  readonly core: RaftCore
  readonly disk: Disk
  readonly transport: Transport
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly limits: RaftNodeLimits
  readonly callbacks: RaftNodeCallbacks
}
