import { clone, type MessageInitShape } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import type { MemberChangeAnswerSchema } from '../../../proto/gen/peer_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type {
  ActionRecorder,
  ChangePlan,
  ClusterAction,
  MembershipChange,
  MembershipControl,
} from '../../ports/membership.ts'
import type { Actor } from '../../ports/actor.ts'
import type { NodeId } from '../../raft/types.ts'
import { runWithAudit } from '../action-recorder.ts'
import { peerMethods } from '../peer/peer-methods.ts'
import type { MemberChanger } from './member-changer.ts'
import type { MembershipStateView, MembershipConsensus } from './membership-consensus.ts'
import type { LeaderRequestForwarder } from './leader-request-forwarder.ts'
import { membershipLimits } from './limits.ts'
import {
  readRequesterActor,
  readMembershipChange,
  readControllerId,
  toChangePlanMessage,
  decodeChangePlan,
} from './messages.ts'
import {
  describeMembershipChange,
  planForCompletedChange,
  isReadyToVote,
  removedMemberId,
  planMembershipChange,
  voterIds,
} from './plan.ts'
import { takeMembershipSnapshot, type MembershipSnapshot } from './membership-snapshot.ts'
import { isMembershipChangeFinished, isJointConfigurationRecord } from './member-keys.ts'
import { pause, waitUntil } from '../../lib/runtime/wait.ts'

interface MembershipServiceDeps {
  readonly consensus: MembershipConsensus
  readonly state: MembershipStateView
  readonly changer: MemberChanger
  readonly calls: LeaderRequestForwarder
  readonly actions: ActionRecorder
  readonly clock: Clock
  readonly log: { info(fields: object, message: string): void }
  readonly onTransferred?: () => void
}

/** Timeout of one attempt on one leader. */
const CHANGE_TIMEOUT_MS = 8_000
const PLAN_TIMEOUT_MS = 5_000
/**
 * Maximum wait for another change in progress, such as an automatic promotion; after it, the caller
 * receives MEMBERSHIP_BUSY.
 */
const TURN_MS = 4_000
/** Time in which another controller must become leader after the old leader has stepped down. */
const SUCCESSION_MS = 5_000
/**
 * Pause between two transfer attempts. Each attempt blocks writes for up to an election timeout.
 */
const TRANSFER_PAUSE_MS = 500
/**
 * Maximum time for which a leader waits for contact with a member, or until a learner has caught
 * up, before it refuses a change that needs this member.
 */
const HEARD_MS = 3_000

/**
 * Membership changes that operators request, on every controller. The leader plans and applies all
 * changes. If a change removes the leader or its vote, and a voter that stays is connected, the
 * leader first transfers leadership, and its successor applies the change.
 */
export class MembershipService implements MembershipControl {
  readonly #deps: MembershipServiceDeps
  /**
   * Changes in progress on the leader. A repeated request waits for the result of the first one.
   */
  readonly #running = new Map<string, Promise<ChangePlan>>()
  #isSelfRemoved = false

  constructor(deps: MembershipServiceDeps) {
    this.#deps = deps
    deps.calls.serve(peerMethods.plan, async (request) => {
      const change = readMembershipChange(request)
      await this.#untilHeard(() => this.#isBeforeItIsHeard(change))
      return { plan: toChangePlanMessage(this.#planHere(change)) }
    })
    deps.calls.serve(peerMethods.change, async (request, timeoutMs) => {
      const { confirmation = null, by } = request
      const change = readMembershipChange(request)
      const plan = await this.#changeHere(change, confirmation, readRequesterActor(by), timeoutMs)
      return { plan: toChangePlanMessage(plan) }
    })
    deps.calls.serve(peerMethods.transfer, async (request, timeoutMs) => {
      const target =
        request.target === undefined ? null : readControllerId(request.target, 'target')
      const wanted = { action: 'leadership-transfer', target }
      const leaderId = await runWithAudit(
        deps.actions,
        wanted,
        readRequesterActor(request.by),
        async () => {
          return await this.#transferHere(target, timeoutMs)
        },
      )
      deps.onTransferred?.()
      return { leaderId }
    })
  }

  async plan(change: MembershipChange): Promise<ChangePlan> {
    const request = { ...change }
    const answer = await this.#deps.calls.ask(peerMethods.plan, request, PLAN_TIMEOUT_MS)
    return decodeChangePlan(answer.plan)
  }

  async change(
    change: MembershipChange,
    confirmation: string | null,
    by: Actor,
  ): Promise<ChangePlan> {
    const typed = confirmation === null ? {} : { confirmation }
    const request = { ...change, ...typed, by: { actor: by } }
    const answer = await this.#deps.calls.ask(
      peerMethods.change,
      request,
      membershipLimits.changeTimeoutMs,
      () => this.#doneHere(change),
    )
    return decodeChangePlan(answer.plan)
  }

  async transferLeadership(target: NodeId | null, by: Actor): Promise<NodeId> {
    const { calls, clock, consensus } = this.#deps
    const answer = await calls.ask(
      peerMethods.transfer,
      { ...(target === null ? {} : { target }), by: { actor: by } },
      membershipLimits.transferTimeoutMs,
    )
    const leaderId = readControllerId(answer.leaderId, 'leaderId')
    // The caller may next ask this controller for the leader, so the response waits until this
    // controller knows the new one.
    const deadlineMs = clock.monotonicMs() + SUCCESSION_MS
    await waitUntil(clock, deadlineMs, () => consensus.leaderId() === leaderId)
    return leaderId
  }

  /** Called when the other controllers have removed this one and no longer respond to it. */
  onSelfRemoved(): void {
    this.#isSelfRemoved = true
  }

  /**
   * Returns the answer if this controller can see that the change is complete; otherwise null. A
   * leader logs a non-joint configuration only after the joint configuration before it was
   * committed. Every later leader would log the same non-joint configuration again, so its content
   * is final even before it is committed.
   */
  #doneHere(change: MembershipChange): MessageInitShape<typeof MemberChangeAnswerSchema> | null {
    const { consensus, state } = this.#deps
    const now = takeMembershipSnapshot(consensus, state)
    if (this.#isSelfRemoved && removedMemberId(change) === consensus.selfId) {
      const record = clone(ConfigurationSchema, now.record)
      record.members = record.members.filter(({ id }) => id !== consensus.selfId)
      return { plan: toChangePlanMessage(planForCompletedChange(change, record)) }
    }
    if (isJointConfigurationRecord(now.record)) return null
    const planned = planMembershipChange(now, change)
    return planned.ok && !planned.plan.isNeeded ? { plan: toChangePlanMessage(planned.plan) } : null
  }

  #isBeforeItIsHeard(change: MembershipChange): boolean {
    const { consensus, state } = this.#deps
    const planned = planMembershipChange(takeMembershipSnapshot(consensus, state), change)
    return !planned.ok && planned.mayPass
  }

  /**
   * Waits while `isTooEarly` returns true, but at most `HEARD_MS`: a new leader has not had contact
   * with all members yet.
   * @throws {Problem} CLUSTER_NO_LEADER when leadership is lost meanwhile.
   */
  async #untilHeard(isTooEarly: () => boolean): Promise<void> {
    const { consensus, clock } = this.#deps
    const isLeader = (): boolean => consensus.status().role === 'leader'
    const deadlineMs = clock.monotonicMs() + HEARD_MS
    await waitUntil(clock, deadlineMs, () => !isTooEarly() || !isLeader())
    if (!isLeader()) throw new Problem('CLUSTER_NO_LEADER')
  }

  #planHere(change: MembershipChange): ChangePlan {
    const { consensus, state } = this.#deps
    const planned = planMembershipChange(takeMembershipSnapshot(consensus, state), change)
    if (!planned.ok) throw new Problem(planned.code, { detail: planned.reason })
    const { plan } = planned
    if (isMembershipChangeFinished(consensus.configuration())) return plan
    const warning = 'another membership change is in progress; retry when it is done'
    return { ...plan, warnings: [...plan.warnings, warning] }
  }

  async #changeHere(
    change: MembershipChange,
    confirmation: string | null,
    by: Actor,
    timeoutMs: number,
  ): Promise<ChangePlan> {
    const key = JSON.stringify([change, confirmation, by])
    const running = this.#running.get(key)
    if (running !== undefined) return await running
    const result = this.#changeRecorded(change, confirmation, by, timeoutMs)
    this.#running.set(key, result)
    try {
      return await result
    } finally {
      this.#running.delete(key)
    }
  }

  /**
   * Records the change and then makes it. Exceptions, if no other change is in progress: a change
   * that is already complete has no effect, and of a refused change only the refusal is recorded,
   * without waiting for this record.
   */
  async #changeRecorded(
    change: MembershipChange,
    confirmation: string | null,
    by: Actor,
    timeoutMs: number,
  ): Promise<ChangePlan> {
    const { consensus, actions } = this.#deps
    const wanted = { action: `member-${change.verb}`, ...namesIn(change) }
    await this.#untilHeard(() => this.#isBeforeItIsHeard(change))
    if (isMembershipChangeFinished(consensus.configuration())) {
      try {
        const plan = this.#planHere(change)
        if (!plan.isNeeded) return plan
        refuseUnconfirmed(plan, confirmation)
      } catch (error) {
        // This promise is not awaited: without a majority, no audit record can be written. The
        // change had no effect.
        if (error instanceof Problem) void actions.note({ ...wanted, outcome: error.code }, by)
        throw error
      }
    }
    return await runWithAudit(actions, wanted, by, async () => {
      return await this.#carryOut(change, confirmation, timeoutMs)
    })
  }

  async #carryOut(
    change: MembershipChange,
    confirmation: string | null,
    timeoutMs: number,
  ): Promise<ChangePlan> {
    const { changer, log } = this.#deps
    const what = describeMembershipChange(change)
    let done: ChangePlan | null = null
    let heir: NodeId | null = null
    try {
      await changer.run({
        what,
        waitMs: TURN_MS,
        timeoutMs: Math.min(timeoutMs, CHANGE_TIMEOUT_MS),
        isDone: (now) => {
          const planned = planMembershipChange(now, change)
          if (!planned.ok || planned.plan.isNeeded) return false
          done ??= planned.plan
          return true
        },
        target: (now) => {
          const planned = planMembershipChange(now, change)
          if (!planned.ok) throw new Problem(planned.code, { detail: planned.reason })
          refuseUnconfirmed(planned.plan, confirmation)
          heir = heirOf(now, planned.plan)
          if (heir !== null) throw new Problem('CLUSTER_NO_LEADER')
          done = planned.plan
          return planned.target
        },
      })
    } catch (error) {
      if (heir === null) throw error
      await this.#handOverTo(heir, what)
    }
    const plan = done as ChangePlan | null
    if (plan === null) throw new Problem('CLUSTER_NO_LEADER')
    if (plan.isNeeded) log.info({ voters: plan.votersAfter }, `membership changed: ${what}`)
    return plan
  }

  /**
   * Transfers leadership to the controller that will make the change.
   * @throws {Problem} CLUSTER_NO_LEADER after the transfer, so that the caller retries on the
   * successor; otherwise the reason why there was no transfer.
   */
  async #handOverTo(heir: NodeId, what: string): Promise<never> {
    const { consensus, log } = this.#deps
    log.info({ to: heir }, `transferring leadership to ${heir} to ${what}`)
    await this.#transferHere(heir, SUCCESSION_MS)
    throw new Problem('CLUSTER_NO_LEADER', {
      detail: `${consensus.selfId} transferred leadership to ${heir}; retry there`,
    })
  }

  /**
   * Transfers leadership, and repeats that while this controller leads: on a busy machine the
   * target may catch up too late, or lose its election.
   * @throws {Problem} CLUSTER_NO_LEADER if neither this controller nor the target leads now, so
   * that the caller sends its request to the next leader; TRANSFER_LEADERSHIP_ERROR after
   * `timeoutMs`; NOT_FOUND or TRANSFER_LEADERSHIP_ERROR if the target cannot lead.
   */
  async #transferHere(target: NodeId | null, timeoutMs: number): Promise<NodeId> {
    const { consensus, clock, state, log } = this.#deps
    if (target === consensus.selfId) return target
    if (target !== null) {
      const isVoter = voterIds(consensus.configuration().record).includes(target)
      await this.#untilHeard(
        () => isVoter && !takeMembershipSnapshot(consensus, state).inContact.has(target),
      )
      refuseHeir(takeMembershipSnapshot(consensus, state), target)
    }
    const deadlineMs = clock.monotonicMs() + timeoutMs
    for (let attempts = 1; ; attempts += 1) {
      const found = await this.#transferOnce(target, deadlineMs)
      if ('leader' in found) return found.leader
      const isLate = clock.monotonicMs() + TRANSFER_PAUSE_MS >= deadlineMs
      if (isLate) {
        const detail = `${found.reason}; ${attempts} attempts in ${Math.round(timeoutMs / 1000)} s, and ${consensus.selfId} still leads`
        throw new Problem('TRANSFER_LEADERSHIP_ERROR', { detail })
      }
      log.info({ to: target, reason: found.reason }, 'leadership was not transferred; trying again')
      await pause(TRANSFER_PAUSE_MS)
    }
  }

  /**
   * Makes one attempt to transfer leadership.
   * @returns the new leader, or the reason why this controller still leads.
   */
  async #transferOnce(
    target: NodeId | null,
    deadlineMs: number,
  ): Promise<{ readonly leader: NodeId } | { readonly reason: string }> {
    const { consensus, clock, state } = this.#deps
    const wanted = target ?? 'another voter'
    const isLeader = (): boolean => consensus.status().role === 'leader'
    try {
      await consensus.transferLeadership(target)
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'TRANSFER_LEADERSHIP_ERROR') throw error
      if (isLeader()) {
        const lag =
          target === null ? null : takeMembershipSnapshot(consensus, state).lagEntries(target)
        const lacks = lag === null || lag === 0 ? '' : `, as it lacked ${lag} entries of the log`
        return { reason: `${error.detail ?? `${wanted} did not become leader in time`}${lacks}` }
      }
    }
    const untilMs = Math.min(deadlineMs, clock.monotonicMs() + SUCCESSION_MS)
    await waitUntil(clock, untilMs, () => consensus.leaderId() !== null && !isLeader())
    const leader = consensus.leaderId()
    const isWanted = target === null ? leader !== consensus.selfId : leader === target
    if (leader !== null && isWanted) return { leader }
    if (isLeader()) return { reason: `${wanted} lost its election` }
    const now = leader === null ? 'no controller' : leader
    const detail = `${now} became leader instead of ${wanted}`
    throw new Problem('CLUSTER_NO_LEADER', { detail })
  }
}

function namesIn(change: MembershipChange): Pick<ClusterAction, 'target' | 'reason'> {
  switch (change.verb) {
    case 'replace':
      return { target: change.oldId, reason: `replaced by ${change.newId}` }
    case 'remove':
      return { target: change.id, reason: change.isCompromised ? 'compromised' : '' }
    default:
      return { target: change.id }
  }
}

function refuseUnconfirmed(plan: ChangePlan, confirmation: string | null): void {
  if (plan.confirmation === null || plan.confirmation === confirmation) return
  const { toleranceBefore, toleranceAfter, votersAfter } = plan
  throw new Problem('TOLERANCE_REFUSED', {
    detail: `failure tolerance would drop from ${toleranceBefore} to ${toleranceAfter} with the voters ${votersAfter.join(', ')}; confirm with the text "${plan.confirmation}"`,
  })
}

/**
 * Chooses the successor of a leader that will lose its vote, preferably a voter that has caught up.
 * null if the leader stays a voter, or if no voter that stays is connected: the Raft core then
 * leads until the change is committed, and steps down.
 */
function heirOf(now: MembershipSnapshot, plan: ChangePlan): NodeId | null {
  if (plan.votersAfter.includes(now.leaderId)) return null
  const staying = plan.votersAfter.filter(
    (id) => plan.votersBefore.includes(id) && now.inContact.has(id),
  )
  return staying.find((id) => isReadyToVote(now, id)) ?? staying[0] ?? null
}

function refuseHeir(now: MembershipSnapshot, target: NodeId): void {
  const member = now.record.members.find(({ id }) => id === target)
  if (member === undefined) {
    const detail = `${target} is not a member of this cluster; see flotilla cluster list`
    throw new Problem('NOT_FOUND', { detail })
  }
  if (!member.voter) {
    const detail = `${target} is a learner; promote it first`
    throw new Problem('TRANSFER_LEADERSHIP_ERROR', { detail })
  }
  if (now.inContact.has(target)) return
  const detail = `${target} has no connection to the leader ${now.leaderId}; start it first`
  throw new Problem('TRANSFER_LEADERSHIP_ERROR', { detail })
}
