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

/** A message may leave only when the write it speaks of is durable; 0 means at once. */
export interface OutgoingMessage {
  readonly message: Message
  readonly afterToken: number
}

/**
 * NOT_LEADER: nothing was logged here; ask the leader. OVERLOADED: refused before logging, try
 * later. TOO_LARGE: never accepted. The rest answer a configuration change: CHANGE_IN_PROGRESS: one
 * is under way, or the leader has not yet committed in its term. NOT_CAUGHT_UP: a voter must first
 * be a learner that has nearly all of the log. INVALID_CONFIGURATION: no voters, or a member named
 * twice.
 */
export type ProposalRefusalCode =
  | 'NOT_LEADER'
  | 'OVERLOADED'
  | 'TOO_LARGE'
  | 'CHANGE_IN_PROGRESS'
  | 'NOT_CAUGHT_UP'
  | 'INVALID_CONFIGURATION'

/**
 * Accepted is not committed: the entry counts only if it is later handed to apply under this index
 * and term.
 */
export type ProposalResult =
  | { readonly id: number; readonly ok: true; readonly index: Index; readonly term: Term }
  | { readonly id: number; readonly ok: false; readonly code: ProposalRefusalCode }

/** `index` >= every write completed before the read was asked for (dissertation 6.4). */
export type ReadResult =
  | { readonly id: number; readonly ok: true; readonly index: Index }
  | { readonly id: number; readonly ok: false; readonly code: 'NOT_LEADER' | 'OVERLOADED' }

/**
 * Done strictly in order. `restore`: the received state of `position` becomes the live one,
 * durably, before anything after it; the `reset` that follows replaces the log by an empty one that
 * continues after `position`.
 */
export type DiskOperation =
  | { readonly type: 'write'; readonly write: DiskWrite }
  /** `configuration`: membership.v1.Configuration in force at `position`. */
  | { readonly type: 'restore'; readonly position: Position; readonly configuration: Uint8Array }
  | { readonly type: 'reset'; readonly position: Position; readonly token: number }
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'settle'; readonly owed: Position | null }

/** Values that others act on. A new one is given out whenever one of these moves. */
export interface CoreStatus {
  readonly role: Role
  readonly term: Term
  readonly leader: NodeId | null
  readonly configuration: Configuration
  /** The record of the configuration in force, with addresses and pins. Not to be changed. */
  readonly configurationRecord: ConfigurationRecord
  /**
   * Log index the configuration in force came with, or of the state that this node started from.
   */
  readonly configurationIndex: Index
  readonly isConfigurationCommitted: boolean
  /**
   * The newest that is known to be committed: who it lists is a member until a later one is
   * committed, too.
   */
  readonly committedConfigurationIndex: Index
  readonly committedConfigurationRecord: ConfigurationRecord
}

/**
 * The work that falls out of the inputs so far. Carried out in the order of the fields; `messages`
 * as their tokens allow; `committed` in index order, and only entries that are committed and
 * durable here.
 */
export interface Effects {
  /** Operations, at most one write unless a snapshot is installed. */
  readonly disk: readonly DiskOperation[]
  readonly messages: readonly OutgoingMessage[]
  readonly status: CoreStatus | null
  readonly proposals: readonly ProposalResult[]
  readonly committed: readonly Entry[]
  readonly reads: readonly ReadResult[]
  /**
   * Peers whose next entry is no longer in the log. Answered by snapshotSent or snapshotFailed,
   * however long it takes and however often the connection breaks: until then no second one is
   * asked for that peer in this leadership.
   */
  readonly sendSnapshots: readonly NodeId[]
}
