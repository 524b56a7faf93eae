import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Index, Message, NodeId, Position } from './types.ts'

/** A command to append to the log; the Raft core does not interpret it. */
export interface Proposal {
  /**
   * Number that the driver chose for the proposal; the ProposalResult contains the same number.
   */
  readonly id: number
  readonly data: Uint8Array
}

/**
 * All inputs of the Raft core. The driver passes them in one at a time; processing an input never
 * waits.
 */
export type CoreInput =
  | { readonly type: 'tick'; readonly nowMs: number }
  /**
   * `storeId`: id of the disk that the sender authenticated; absent where disks are not
   * distinguished.
   */
  | {
      readonly type: 'message'
      readonly message: Message
      readonly storeId?: Uint8Array
      readonly nowMs: number
    }
  | {
      readonly type: 'propose'
      readonly proposals: readonly Proposal[]
      readonly nowMs: number
    }
  /**
   * `target`: the final members; the Raft core enters and leaves the joint configuration without
   * further input. `basedOn`: index of the configuration from which the caller derived `target`. If
   * another configuration is current, the core refuses the change, because it would undo that
   * configuration.
   */
  | {
      readonly type: 'changeConfiguration'
      readonly id: number
      readonly basedOn?: Index
      readonly target: ConfigurationRecord
      readonly nowMs: number
    }
  | { readonly type: 'read'; readonly id: number }
  /** `target`: the voter that should lead; null: the most up-to-date voter. */
  | { readonly type: 'transfer'; readonly target: NodeId | null }
  /** All writes and resets up to `token` are on disk. */
  | { readonly type: 'persisted'; readonly token: number }
  /**
   * Entries up to `index` have been applied; `timeMs` is the timestamp of the last of them. The
   * Raft core can then pass more committed entries to the state machine. `setbackMs`: the number of
   * ms by which log time has been behind the timestamps since an operator reset log time; default
   * 0.
   */
  | {
      readonly type: 'applied'
      readonly index: number
      readonly timeMs: number
      readonly setbackMs?: number
    }
  /**
   * The state through `position` is durable outside the log, so the log may drop the entries
   * through `position`.
   */
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'snapshotSent'; readonly to: NodeId }
  | { readonly type: 'snapshotFailed'; readonly to: NodeId }
  | { readonly type: 'unreachable'; readonly to: NodeId }
