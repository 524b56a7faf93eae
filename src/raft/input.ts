import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Index, Message, NodeId, Position } from './types.ts'

/** Command that a client wants logged; opaque. */
export interface Proposal {
  /** The driver's own number for it; comes back in a ProposalResult. */
  readonly id: number
  readonly data: Uint8Array
}

/** Everything that can happen to a core. It is stepped in one at a time and never waits. */
export type Input =
  | { readonly type: 'tick'; readonly nowMs: number }
  /**
   * `storeId`: of the disk that the sender has proven to run on; absent where disks are not told
   * apart.
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
   * `target`: the members wanted in the end. The core makes the joint step and leaves it by itself.
   * `basedOn`: index of the configuration that it was derived from; with another in force it is
   * refused, or what that one changed would be undone.
   */
  | {
      readonly type: 'changeConfiguration'
      readonly id: number
      readonly basedOn?: Index
      readonly target: ConfigurationRecord
      readonly nowMs: number
    }
  | { readonly type: 'read'; readonly id: number }
  /** null: whichever voter is furthest. */
  | { readonly type: 'transfer'; readonly target: NodeId | null }
  /** All writes and resets up to `token` are on disk. */
  | { readonly type: 'persisted'; readonly token: number }
  /**
   * Apply has reached `index`, whose stamp is `timeMs`; opens the window for further committed
   * entries. `setbackMs`: log time is so much behind the stamps, as it was brought back; 0 when
   * absent.
   */
  | {
      readonly type: 'applied'
      readonly index: number
      readonly timeMs: number
      readonly setbackMs?: number
    }
  /** The state through `position` is durable outside the log, which may forget it. */
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'snapshotSent'; readonly to: NodeId }
  | { readonly type: 'snapshotFailed'; readonly to: NodeId }
  | { readonly type: 'unreachable'; readonly to: NodeId }
