import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Index, Message, NodeId, Position } from './types.ts'

/** A command of a client to append to the log; opaque to the core. */
export interface Proposal {
  /** Number chosen by the driver and returned in the ProposalResult. */
  readonly id: number
  readonly data: Uint8Array
}

/** All inputs of a core. The driver steps them in one at a time; a step never waits. */
export type Input =
  | { readonly type: 'tick'; readonly nowMs: number }
  /** `storeId`: id of the sender's authenticated disk; absent where disks are not distinguished. */
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
   * `target`: the final members; the core enters and leaves the joint configuration on its own.
   * `basedOn`: index of the configuration that `target` was derived from. The core refuses the
   * change if another one is in force, because it would undo that one.
   */
  | {
      readonly type: 'changeConfiguration'
      readonly id: number
      readonly basedOn?: Index
      readonly target: ConfigurationRecord
      readonly nowMs: number
    }
  | { readonly type: 'read'; readonly id: number }
  /** null: the most up-to-date voter. */
  | { readonly type: 'transfer'; readonly target: NodeId | null }
  /** All writes and resets up to `token` are on disk. */
  | { readonly type: 'persisted'; readonly token: number }
  /**
   * Apply has reached `index`, which has the stamp `timeMs`; opens the window for more committed
   * entries. `setbackMs`: how far a reset of log time put it behind the stamps; default 0.
   */
  | {
      readonly type: 'applied'
      readonly index: number
      readonly timeMs: number
      readonly setbackMs?: number
    }
  /** The state through `position` is durable outside the log, so the log may drop these entries. */
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'snapshotSent'; readonly to: NodeId }
  | { readonly type: 'snapshotFailed'; readonly to: NodeId }
  | { readonly type: 'unreachable'; readonly to: NodeId }
