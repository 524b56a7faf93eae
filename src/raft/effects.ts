import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type {
  Configuration,
  DiskWrite,
  Entry,
  Index,
  Message,
  NodeId,
  Position,
  Role,
  Term,
} from './types.ts'

/**
 * A message that the driver sends only after the write `afterToken` is durable; 0: the driver sends
 * it immediately.
 */
export interface OutgoingMessage {
  readonly message: Message
  readonly afterToken: number
}

/**
 * NOT_LEADER: this node logged nothing, because it is not the leader or is transferring leadership;
 * the caller must send the proposal to the leader. OVERLOADED: refused before logging; the caller
 * may retry later. TOO_LARGE: never accepted. The other codes are for a configuration change.
 * CHANGE_IN_PROGRESS: another change is in progress, the target was derived from a configuration
 * that is not current, or the leader has not committed an entry of its term yet. NOT_CAUGHT_UP: a
 * new voter must first be a learner that has nearly all of the log. INVALID_CONFIGURATION: the
 * target is malformed, for example without voters, or replaces the disk of a voter in an unsafe
 * way.
 */
export type ProposalRefusalCode =
  | 'NOT_LEADER'
  | 'OVERLOADED'
  | 'TOO_LARGE'
  | 'CHANGE_IN_PROGRESS'
  | 'NOT_CAUGHT_UP'
  | 'INVALID_CONFIGURATION'

/**
 * Result of a proposal. Accepted does not mean committed: the entry is committed only if the Raft
 * core later passes an entry with this index and term to the state machine.
 */
export type ProposalResult =
  | { readonly id: number; readonly ok: true; readonly index: Index; readonly term: Term }
  | { readonly id: number; readonly ok: false; readonly code: ProposalRefusalCode }

/**
 * Result of a linearizable read. `index` is at least the index of every write that completed before
 * the read began (dissertation 6.4).
 */
export type ReadResult =
  | { readonly id: number; readonly ok: true; readonly index: Index }
  | { readonly id: number; readonly ok: false; readonly code: 'NOT_LEADER' | 'OVERLOADED' }

/**
 * Disk operations; the driver carries them out strictly in order. `restore` durably makes the state
 * that was received for `position` the current state, before any later operation. The `reset` that
 * follows replaces the log with an empty log that continues after `position`.
 */
export type DiskOperation =
  | { readonly type: 'write'; readonly write: DiskWrite }
  /** `configuration`: the membership.v1.Configuration that applies at `position`. */
  | { readonly type: 'restore'; readonly position: Position; readonly configuration: Uint8Array }
  | { readonly type: 'reset'; readonly position: Position; readonly token: number }
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'settle'; readonly owed: Position | null }

/**
 * Status of the node for its users. The Raft core emits a new status whenever one of these values
 * changes.
 */
export interface CoreStatus {
  readonly role: Role
  readonly term: Term
  readonly leader: NodeId | null
  readonly configuration: Configuration
  /**
   * The record of the current configuration, including addresses and pinned keys. Do not modify it.
   */
  readonly configurationRecord: ConfigurationRecord
  /**
   * Log index of the current configuration. If this node read the configuration from its state at
   * the start or from a snapshot, the index of that state or snapshot.
   */
  readonly configurationIndex: Index
  readonly isConfigurationCommitted: boolean
  /**
   * Index of the newest configuration that is known to be committed. Its members stay members until
   * a later configuration is committed.
   */
  readonly committedConfigurationIndex: Index
  readonly committedConfigurationRecord: ConfigurationRecord
}

/**
 * Effects of the inputs so far. The driver starts the operations of `disk` in order, and sends each
 * of the `messages` once the write on which the message depends is durable; it may send a message
 * that depends on no write before it starts the operations. `committed` is in index order and
 * contains only entries that are committed and durable on this node.
 */
export interface CoreEffects {
  /** Disk operations to carry out; at most one is a write, unless a snapshot is installed. */
  readonly disk: readonly DiskOperation[]
  readonly messages: readonly OutgoingMessage[]
  readonly status: CoreStatus | null
  readonly proposals: readonly ProposalResult[]
  readonly committed: readonly Entry[]
  readonly reads: readonly ReadResult[]
  /**
   * Peers whose next entry is no longer in the log. The driver must report snapshotSent or
   * snapshotFailed for each of them, no matter how long the transfer takes or how often the
   * connection breaks. Until then, this leader requests no second snapshot for that peer.
   */
  readonly sendSnapshots: readonly NodeId[]
}
