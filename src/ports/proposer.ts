import type { KindName } from '../entities/kind-records.ts'
import type { CommandKind } from '../../proto/gen/command_pb.ts'
import type { FieldFault, ProblemCode } from '../lib/problems.ts'
import type { TraceContext } from '../lib/trace-context.ts'
import type { Actor } from './actor.ts'

/**
 * Decision of the state machine about a command. It is a value in the replicated result, equal on
 * every controller, and never contains a secret.
 */
export type Outcome =
  | { readonly ok: true; readonly id: string }
  | {
      readonly ok: false
      readonly code: ProblemCode
      readonly fault: FieldFault | null
      readonly detail: string | null
    }

/** A command to propose, with its actor and request. */
export interface ProposalInput {
  readonly kind: CommandKind
  /** The encoded protobuf message that belongs to `kind`. */
  readonly payload: Uint8Array
  /**
   * The feature level that the payload requires, if it is higher than the level of its kind of
   * command.
   */
  readonly level?: number
  readonly actor: Actor
  /** The request id that the caller sent; absent if the caller sent none. */
  readonly request?: {
    readonly caller: string
    readonly id: Uint8Array
    readonly bodyHash: Uint8Array
  }
  /** Trace of the request behind the command. It appears in logs and is not part of the command. */
  readonly trace?: TraceContext
  readonly judgedOn?: readonly {
    readonly entity: KindName
    readonly id: string
    readonly revision: number
  }[]
}

/** Index and outcome of an applied proposal. */
export interface AppliedProposal {
  /** Log index of the entry with the outcome, which this controller has applied. */
  readonly index: number
  readonly outcome: Outcome
}

/** Proposes every write to the cluster. */
export interface Proposer {
  /**
   * Proposes through the current leader, retries with a new leader if that one fails, and resolves
   * after this controller has applied the command. If the state machine refuses the command, the
   * promise resolves with that outcome and does not reject.
   * @throws {Problem} UNAUTHORIZED: the actor has no right in any state. CLUSTER_NO_LEADER: no
   * leader received the command, and nothing changed. OUTCOME_UNKNOWN: a leader received it, and
   * its outcome is unknown at the deadline. SERVER_TOO_MANY_REQUESTS: this controller has too many
   * outstanding writes, of this caller or in total, or the leader was overloaded until the
   * deadline. FEATURE_LEVEL_NOT_RAISED: the command requires a higher feature level than the
   * cluster has. NODE_QUARANTINED: this controller is in quarantine.
   */
  propose(input: ProposalInput): Promise<AppliedProposal>
}
