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

/** The driver sends the message only after the write `afterToken` is durable; 0 means at once. */
export interface OutgoingMessage {
  readonly message: Message
  readonly afterToken: number
}

/**
 * NOT_LEADER: nothing was logged here; ask the leader. OVERLOADED: refused before logging; try
 * later. TOO_LARGE: never accepted. The other codes answer a configuration change.
 * CHANGE_IN_PROGRESS: another change is in progress, or the leader has not committed an entry of
 * its term yet. NOT_CAUGHT_UP: a new voter must first be a learner with nearly all of the log.
 * INVALID_CONFIGURATION: the change names no voters, or a member twice.
 */
export type ProposalRefusalCode =
  | 'NOT_LEADER'
  | 'OVERLOADED'
  | 'TOO_LARGE'
  | 'CHANGE_IN_PROGRESS'
  | 'NOT_CAUGHT_UP'
  | 'INVALID_CONFIGURATION'

/**
 * Accepted does not mean committed: the entry is committed only if the core later hands it to apply
 * with this index and term.
 */
export type ProposalResult =
  | { readonly id: number; readonly ok: true; readonly index: Index; readonly term: Term }
  | { readonly id: number; readonly ok: false; readonly code: ProposalRefusalCode }

/**
 * `index` is at least that of every write that completed before the read began (dissertation 6.4).
 */
export type ReadResult =
  | { readonly id: number; readonly ok: true; readonly index: Index }
  | { readonly id: number; readonly ok: false; readonly code: 'NOT_LEADER' | 'OVERLOADED' }

/**
 * Disk operations, carried out strictly in order. `restore` durably makes the received state of
 * `position` the live one before anything after it. The `reset` that follows replaces the log with
 * an empty one that continues after `position`.
 */
export type DiskOperation =
  | { readonly type: 'write'; readonly write: DiskWrite }
  /** `configuration`: membership.v1.Configuration in force at `position`. */
  | { readonly type: 'restore'; readonly position: Position; readonly configuration: Uint8Array }
  | { readonly type: 'reset'; readonly position: Position; readonly token: number }
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'settle'; readonly owed: Position | null }

/**
 * Status of the node for its users. The core emits a new one whenever one of these values changes.
 */
export interface CoreStatus {
  readonly role: Role
  readonly term: Term
  readonly leader: NodeId | null
  readonly configuration: Configuration
  /** The record of the configuration in force, with addresses and pins. Do not modify it. */
  readonly configurationRecord: ConfigurationRecord
  /** Log index of the configuration in force, or of the state that this node started from. */
  readonly configurationIndex: Index
  readonly isConfigurationCommitted: boolean
  /**
   * Index of the newest configuration known to be committed. Its members stay members until a later
   * configuration is committed.
   */
  readonly committedConfigurationIndex: Index
  readonly committedConfigurationRecord: ConfigurationRecord
}

/**
 * Effects of the inputs so far. The driver carries them out in the order of the fields, and sends
 * `messages` as their tokens become durable. `committed` is in index order and holds only entries
 * that are committed and durable on this node.
 */
export interface Effects {
  /** The operations; at most one is a write, unless a snapshot is installed. */
  readonly disk: readonly DiskOperation[]
  readonly messages: readonly OutgoingMessage[]
  readonly status: CoreStatus | null
  readonly proposals: readonly ProposalResult[]
  readonly committed: readonly Entry[]
  readonly reads: readonly ReadResult[]
  /**
   * Peers whose next entry is no longer in the log. The driver answers each with snapshotSent or
   * snapshotFailed, no matter how long the transfer takes or how often the connection breaks. Until
   * then this leader requests no second snapshot for that peer.
   */
  readonly sendSnapshots: readonly NodeId[]
}
