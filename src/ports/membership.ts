import type { ProblemCode } from '../lib/problems.ts'
import type { Index, NodeId } from '../raft/types.ts'
import type { Actor } from './actor.ts'

/**
 * Changes that an operator may ask for. Asking for what is already so is done, and changes nothing.
 */
export type MembershipChange =
  /** A caught-up learner becomes a voter. */
  | { readonly verb: 'promote'; readonly id: NodeId }
  /** A voter stays as a learner. */
  | { readonly verb: 'demote'; readonly id: NodeId }
  /** `isCompromised`: nothing that it knew is honoured any longer, so every session ends. */
  | { readonly verb: 'remove'; readonly id: NodeId; readonly isCompromised: boolean }
  /**
   * One joint change: `newId`, a caught-up learner, votes in place of `oldId`, which is removed.
   */
  | { readonly verb: 'replace'; readonly oldId: NodeId; readonly newId: NodeId }

/** Consequences of a change, before it is made or after. */
export interface ChangePlan {
  readonly change: MembershipChange
  /** False: the members are like that already. */
  readonly isNeeded: boolean
  readonly votersBefore: readonly NodeId[]
  readonly votersAfter: readonly NodeId[]
  /** Number of voters that may fail while writes continue: floor((voters - 1) / 2). */
  readonly toleranceBefore: number
  readonly toleranceAfter: number
  /** Sentences worth reading before it is done. */
  readonly warnings: readonly string[]
  /**
   * The text that must be typed because the tolerance falls; null when nothing needs to be
   * confirmed.
   */
  readonly confirmation: string | null
}

export interface Invitation {
  /** The ticket itself: a secret until it is used. */
  readonly ticket: string
  readonly id: string
  readonly expiresAtMs: number
}

/** A ticket as operators see it: neither its secret nor what it is known by. */
export interface TicketView {
  readonly id: string
  /** False: who joins by it stays a learner. */
  readonly isVoter: boolean
  /** Log time, UTC ms. */
  readonly createdAtMs: number
  readonly expiresAtMs: number
  /** The controller that joined by it; null: none yet. */
  readonly usedBy: NodeId | null
}

/** Request of a new controller, sent with its ticket. */
export interface JoinRequest {
  readonly ticket: string
  readonly id: NodeId
  /** PEM, PKCS #10; signed by the key that stays on the new controller. */
  readonly certificateRequestPem: string
  /** 16 bytes. */
  readonly storeId: Uint8Array
  /** host:port of its mesh. */
  readonly address: string
  /** DNS names and IP addresses for its certificate. */
  readonly hosts: readonly string[]
  readonly version: string
  readonly featureLevel: number
}

/**
 * All that a new controller needs; the same request gets the same answer again. Nothing in it is
 * secret.
 */
export interface JoinAnswer {
  readonly clusterId: string
  readonly generation: number
  readonly trustDomain: string
  /** Leaf first, then the intermediates. */
  readonly certificatePem: string
  /** Anchors that peers and clients are verified against. */
  readonly caPem: string
  /** membership.v1.Configuration in force, encoded, and its index. */
  readonly configuration: Uint8Array
  readonly configurationIndex: Index
  readonly isVoter: boolean
  /** UTC ms, to compare clocks with. */
  readonly nowMs: number
}

/** Action on the cluster beside its records, done or about to be. */
export interface ClusterAction {
  /** Lower case letters and hyphens. */
  readonly action: string
  /** A controller; null: none is named. */
  readonly target: NodeId | null
  /** Outcome; `requested`: it is about to be carried out. */
  readonly outcome: 'requested' | 'done' | ProblemCode
  readonly reason?: string
}

/** Writes down who did what to the cluster, where every controller remembers it. */
export interface ActionRecorder {
  /**
   * Resolves once it is in the log.
   * @throws {Problem} when it is not, or the actor may not any more.
   */
  record(action: ClusterAction, by: Actor): Promise<void>
  /**
   * Like `record`, for an action that has already been carried out: if it cannot be written to the
   * log, this controller's log file records it.
   */
  note(action: ClusterAction, by: Actor): Promise<void>
}

/**
 * Members, changed through any controller: what only the leader can do is passed on to it.
 */
export interface MembershipControl {
  /**
   * @throws {Problem} MEMBERSHIP_REFUSED with the reason, NOT_FOUND, CLUSTER_NO_LEADER,
   * PEER_UNREACHABLE.
   */
  plan(change: MembershipChange): Promise<ChangePlan>
  /**
   * Resolves once the change is committed and no longer joint. Safe to repeat at any point.
   * @param by who wants it: written into the log before anything is changed, and again with what
   * came of it.
   * @param confirmation what {@link ChangePlan.confirmation} asks for, typed.
   * @throws {Problem} as `plan`; TOLERANCE_REFUSED without the right confirmation; MEMBERSHIP_BUSY.
   */
  change(change: MembershipChange, confirmation: string | null, by: Actor): Promise<ChangePlan>
  /**
   * @returns who leads afterwards.
   * @throws {Problem} TRANSFER_LEADERSHIP_ERROR, NOT_FOUND, CLUSTER_NO_LEADER.
   */
  transferLeadership(target: NodeId | null, by: Actor): Promise<NodeId>
}

/** Letting new controllers in; any member can. */
export interface Admission {
  /** @param lifetimeMs of the ticket, at most 7 days. */
  invite(
    options: { readonly isVoter: boolean; readonly lifetimeMs: number },
    by: Actor,
  ): Promise<Invitation>
  /**
   * Every ticket that could still be joined by or was used and has not expired, the newest first.
   * @throws {Problem} when this controller cannot know the latest ones.
   */
  tickets(): Promise<readonly TicketView[]>
  /**
   * Nobody joins by it from then on.
   * @throws {Problem} NOT_FOUND; MEMBERSHIP_REFUSED when it was used.
   */
  revoke(id: string, by: Actor): Promise<void>
  /**
   * @throws {Problem} TICKET_REFUSED, MEMBERSHIP_REFUSED (id taken), COULD_NOT_VALIDATE with the
   * field.
   */
  admit(request: JoinRequest): Promise<JoinAnswer>
}
