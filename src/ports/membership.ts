import type { ProblemCode } from '../lib/problems.ts'
import type { Index, NodeId } from '../raft/types.ts'
import type { Actor } from './actor.ts'

/** Membership changes for operators. A repeated change succeeds and changes nothing. */
export type MembershipChange =
  /** Promotes a learner that has caught up to voter. */
  | { readonly verb: 'promote'; readonly id: NodeId }
  /** Demotes a voter to learner. */
  | { readonly verb: 'demote'; readonly id: NodeId }
  /**
   * Removes a member. `isCompromised`: the shared keys that the controller knew become invalid at
   * once, so every session ends, and open enrollments, join tickets and unused admissions are
   * withdrawn. An operator must replace the issuing authority.
   */
  | { readonly verb: 'remove'; readonly id: NodeId; readonly isCompromised: boolean }
  /**
   * Promotes `newId`, a learner that has caught up, to voter and removes the voter `oldId`, in one
   * joint change.
   */
  | { readonly verb: 'replace'; readonly oldId: NodeId; readonly newId: NodeId }

/** Consequences of a membership change. */
export interface ChangePlan {
  readonly change: MembershipChange
  /** False if the members already are as the change requests, so that no change is needed. */
  readonly isNeeded: boolean
  readonly votersBefore: readonly NodeId[]
  readonly votersAfter: readonly NodeId[]
  /** Number of voters that may fail while writes continue: floor((voters - 1) / 2). */
  readonly toleranceBefore: number
  readonly toleranceAfter: number
  /** Warnings that the operator should read before the change. */
  readonly warnings: readonly string[]
  /**
   * Text that the operator must type to confirm a change that decreases the failure tolerance; null
   * if no confirmation is needed.
   */
  readonly confirmation: string | null
}

/** A new join ticket; `ticket` is its secret string. */
export interface NewJoinTicket {
  /** The ticket itself: a secret until it is used. */
  readonly ticket: string
  readonly id: string
  readonly expiresAtMs: number
}

/** A ticket as operators see it: without its secret and the hash of the secret. */
export interface TicketView {
  readonly id: string
  /** True if the controller will become a voter; false if it stays a learner. */
  readonly isVoter: boolean
  /** Log time, UTC ms. */
  readonly createdAtMs: number
  readonly expiresAtMs: number
  /** The controller that joined with the ticket; null: no controller has used the ticket. */
  readonly usedBy: NodeId | null
}

/** Request of a new controller, sent with its ticket. */
export interface JoinRequest {
  readonly ticket: string
  readonly id: NodeId
  /**
   * PEM of the new controller's certificate request (PKCS #10). It is signed with the controller's
   * private key, which stays on the new controller.
   */
  readonly certificateRequestPem: string
  /** 16 bytes. */
  readonly storeId: Uint8Array
  /** host:port of the new controller's mesh listener. */
  readonly address: string
  /** DNS names and IP addresses that the new controller's certificate must contain. */
  readonly hosts: readonly string[]
  readonly version: string
  readonly featureLevel: number
}

/** An option that must be equal on every controller. */
export interface SharedOption {
  /** Name of the option, for example `oidc.enabled`. */
  readonly name: string
  /** JSON of a string, number or boolean. */
  readonly value: string
}

/**
 * The response to a {@link JoinRequest}: everything that a new controller needs. A repeated request
 * is not a second admission. The response contains no secret.
 */
export interface JoinResponse {
  readonly clusterId: string
  readonly generation: number
  readonly trustDomain: string
  /** PEM of the controller's certificate: leaf first, then the intermediates. */
  readonly certificatePem: string
  /** PEM of the trust anchors with which the controller verifies peers and clients. */
  readonly caPem: string
  /** Encoded membership.v1.Configuration; `configurationIndex` is its log index. */
  readonly configuration: Uint8Array
  readonly configurationIndex: Index
  readonly isVoter: boolean
  /** Current time of the responding controller, UTC ms, to compare clocks. */
  readonly nowMs: number
  /**
   * Options that must be equal on every controller, as the responding controller has them; null:
   * its release does not send them.
   */
  readonly sharedOptions: readonly SharedOption[] | null
}

/**
 * An action of an operator or of a controller on the cluster that changes no record. The log
 * records it before the action, after it, or both times.
 */
export interface ClusterAction {
  /** Name of the action, in lower case letters and hyphens. */
  readonly action: string
  /** Id of the controller that the action concerns; null if there is none. */
  readonly target: NodeId | null
  /** `requested`: recorded before the action; otherwise recorded after it, with its outcome. */
  readonly outcome: 'requested' | 'done' | ProblemCode
  readonly reason?: string
}

/** Records actions on the cluster in the log. */
export interface ActionRecorder {
  /**
   * Resolves once the action is in the log.
   * @throws {Problem} when it could not be logged, or the actor lacks the right.
   */
  record(action: ClusterAction, by: Actor): Promise<void>
  /**
   * Like `record`, for an action that has already happened. If the log does not accept the record,
   * this controller logs a warning with the action.
   */
  note(action: ClusterAction, by: Actor): Promise<void>
}

/**
 * Changes members. A caller may use any controller; each one forwards requests that only the leader
 * can serve.
 */
export interface MembershipControl {
  /**
   * Computes the consequences of a change without making it.
   * @throws {Problem} MEMBERSHIP_REFUSED with the reason, NOT_FOUND, CLUSTER_NO_LEADER,
   * PEER_UNREACHABLE.
   */
  plan(change: MembershipChange): Promise<ChangePlan>
  /**
   * Makes the change. Resolves once the change is committed and the configuration is no longer
   * joint. A caller may repeat it at any point.
   * @param by actor, recorded in the log before the change and again with its outcome.
   * @param confirmation the text {@link ChangePlan.confirmation} as the operator typed it.
   * @throws {Problem} as `plan`; TOLERANCE_REFUSED without the right confirmation; MEMBERSHIP_BUSY.
   */
  change(change: MembershipChange, confirmation: string | null, by: Actor): Promise<ChangePlan>
  /**
   * Transfers leadership.
   * @param target null: any suitable voter.
   * @returns the new leader.
   * @throws {Problem} TRANSFER_LEADERSHIP_ERROR, NOT_FOUND, CLUSTER_NO_LEADER.
   */
  transferLeadership(target: NodeId | null, by: Actor): Promise<NodeId>
}

/** Admits new controllers to the cluster; any member can do so. */
export interface ControllerAdmission {
  /**
   * Creates a join ticket.
   * @param lifetimeMs lifetime of the ticket, at most 7 days.
   */
  invite(
    options: { readonly isVoter: boolean; readonly lifetimeMs: number },
    by: Actor,
  ): Promise<NewJoinTicket>
  /**
   * All tickets that have not expired, used or not, the newest first.
   * @throws {Problem} when this controller cannot get the latest state.
   */
  tickets(): Promise<readonly TicketView[]>
  /**
   * Revokes a ticket.
   * @throws {Problem} NOT_FOUND; MEMBERSHIP_REFUSED when a controller has used it.
   */
  revoke(id: string, by: Actor): Promise<void>
  /**
   * Admits a controller that presents a ticket.
   * @throws {Problem} TICKET_REFUSED, MEMBERSHIP_REFUSED (id taken), COULD_NOT_VALIDATE with the
   * field.
   */
  admit(request: JoinRequest): Promise<JoinResponse>
}
