import { clone, equals } from '@bufbuild/protobuf'

import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
  type Departure,
} from '../../../proto/gen/membership_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { ActionRecorder } from '../../ports/membership.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { NodeId } from '../../raft/types.ts'
import { commonVoterFeatureLevel } from '../feature-level.ts'
import { type Logger, LogThrottle } from '../logger.ts'
import { callPeer, encodePeerMessage } from '../peer/peer-message.ts'
import { peerMethods } from '../peer/peer-methods.ts'
import type { MemberChanger } from './member-changer.ts'
import {
  findAdmission,
  type MembershipStateView,
  type MembershipConsensus,
} from './membership-consensus.ts'
import {
  learnersAwaitingPromotion,
  nextReconcileStep,
  type ReconcileStep,
  type ReconcilerView,
} from './reconcile.ts'
import { membershipLimits } from './limits.ts'
import { isReadyToVote, makeVoter, planMembershipChange, voterIds } from './plan.ts'
import { isMembershipChangeFinished, isSameMemberKey, admissionKeySha256 } from './member-keys.ts'
import { takeMembershipSnapshot } from './membership-snapshot.ts'

/** Steps for the shared secrets. A caller may repeat each step at any time. */
interface MemberSecrets {
  /**
   * Deletes the admission of a former member and rotates the secrets that the member could decrypt.
   * @throws {Problem}
   * @param manner isCompromised: the previous secrets become invalid immediately, without an
   * overlap. isAdmittedAgain: the id was admitted again with another key, so its admission is not
   * deleted.
   */
  afterRemoval(
    id: NodeId,
    manner: { readonly isCompromised: boolean; readonly isAdmittedAgain: boolean },
  ): Promise<void>
  /**
   * Whether the cluster key or the factor key must be rotated, because a former member could
   * decrypt it, or there is no factor key yet.
   */
  isRotationDue(): boolean
  /**
   * Rotates the secrets for which a rotation is due.
   * @throws {Problem}
   */
  rotateIfDue(reason: string): Promise<void>
  /** Sorted ids of admitted controllers that cannot decrypt every secret version that they need. */
  admittedIdsLackingSecrets(): readonly NodeId[]
  /**
   * Sorted ids of controllers, including members, admitted by a ticket that has expired or was
   * deleted.
   */
  admittedIdsWithExpiredTickets(): readonly NodeId[]
  /**
   * Wraps the secrets that admitted controllers lack, if this controller can decrypt them.
   * @returns whether there were any.
   * @throws {Problem}
   */
  wrapMissingSecrets(): Promise<boolean>
}

export interface ReconcilerDeps {
  readonly consensus: MembershipConsensus
  readonly state: MembershipStateView
  readonly changer: MemberChanger
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly secrets: MemberSecrets
  readonly featureLevel: {
    /** The newest feature level that this release supports. */
    readonly own: number
    /**
     * Raises the level by one logged command. A caller may repeat it.
     * @throws {Problem}
     */
    raise(level: number): Promise<void>
  }
  readonly actions: ActionRecorder
  readonly joinTimeoutMs?: number
}

const TURN_MS = 250
/** Pause after a failed step, because the next attempt would probably fail for the same reason. */
const BACK_OFF_MS = 2_000
const PROBE_TIMEOUT_MS = 1_000
const STEP_TIMEOUT_MS = 8_000
const NOTHING_TO_SHARE = [
  'MEMBERSHIP_REFUSED',
  {
    detail:
      'this leader lacks the shared secrets that another member needs; transfer leadership to a member that has them (flotilla cluster transfer-leadership)',
  },
] as const

/**
 * Carries out membership steps on the leader. Each step is computed from the current members and
 * state and is safe to repeat, so a leader may fail at any point.
 */
export class MembershipReconciler {
  readonly #deps: ReconcilerDeps
  readonly #throttle = new LogThrottle({ windowMs: 60_000, keysMax: 64 })
  readonly #lastContactMs = new Map<NodeId, number>()
  readonly #heldUntilMs = new Map<ReconcileStep['type'], number>()
  readonly #reachedBy = new Map<NodeId, ReadonlySet<NodeId>>()
  #stopTimer: (() => void) | null = null
  #isAtWork = false
  #leadsSinceMs: number | null = null

  constructor(deps: ReconcilerDeps) {
    this.#deps = deps
    const { name, answer } = peerMethods.reach
    deps.consensus.peers.serve(name, 'members', () => {
      const reached = [...connectedIds(deps.consensus)]
      return Promise.resolve(encodePeerMessage(answer, { reached }))
    })
  }

  start(): void {
    this.#stopTimer ??= periodicScheduler.every(TURN_MS, () => void this.#turn())
  }

  stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = null
  }

  async #turn(): Promise<void> {
    const { consensus, changer, clock, joinTimeoutMs } = this.#deps
    this.#noteContacts()
    const isIdle = this.#leadsSinceMs === null || this.#isAtWork
    if (isIdle || changer.isBusy || !isMembershipChangeFinished(consensus.configuration())) return
    this.#isAtWork = true
    try {
      await this.#probe()
      const step = nextReconcileStep(
        this.#view(),
        joinTimeoutMs ?? membershipLimits.joinTimeoutMs,
        (type) => clock.monotonicMs() < (this.#heldUntilMs.get(type) ?? 0),
      )
      if (step !== null && this.#stopTimer !== null) await this.#carryOut(step)
    } finally {
      this.#isAtWork = false
    }
  }

  #noteContacts(): void {
    const { consensus, clock } = this.#deps
    const nowMs = clock.monotonicMs()
    if (consensus.status().role !== 'leader') {
      this.#leadsSinceMs = null
      this.#lastContactMs.clear()
      this.#reachedBy.clear()
      return
    }
    this.#leadsSinceMs ??= nowMs
    for (const id of connectedIds(consensus)) this.#lastContactMs.set(id, nowMs)
  }

  /**
   * If a learner that is to become a voter has caught up, asks the other voters to which members
   * they are connected.
   */
  async #probe(): Promise<void> {
    const { consensus, state } = this.#deps
    this.#reachedBy.clear()
    const now = takeMembershipSnapshot(consensus, state)
    if (!learnersAwaitingPromotion(now.record).some((id) => isReadyToVote(now, id))) return
    const voters = now.record.members.filter(({ voter, id }) => voter && id !== now.leaderId)
    await Promise.all(
      voters.map(async ({ id }) => {
        this.#reachedBy.set(id, await this.#reachedFrom(id))
      }),
    )
  }

  async #reachedFrom(voter: NodeId): Promise<ReadonlySet<NodeId>> {
    const { peers } = this.#deps.consensus
    try {
      const { reached } = await callPeer(peers, voter, peerMethods.reach, {}, PROBE_TIMEOUT_MS)
      return new Set(reached)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      return new Set()
    }
  }

  #view(): ReconcilerView {
    const { consensus, state, clock, secrets, featureLevel } = this.#deps
    const nowMs = clock.monotonicMs()
    const now = takeMembershipSnapshot(consensus, state)
    const known = {
      selfId: consensus.selfId,
      own: featureLevel.own,
      peers: consensus.peerStatuses(),
    }
    return {
      ...now,
      reachedBy: (id) => {
        const voters = [...this.#reachedBy].filter(([, reached]) => reached.has(id))
        return new Set(voters.map(([voter]) => voter))
      },
      silentMs: (id) => nowMs - (this.#lastContactMs.get(id) ?? this.#leadsSinceMs ?? nowMs),
      isRotationDue: secrets.isRotationDue(),
      lacksSecrets: secrets.admittedIdsLackingSecrets().length > 0,
      admittedIdsWithExpiredTickets: secrets.admittedIdsWithExpiredTickets(),
      featureLevel: {
        inForce: state.featureLevel,
        ofVoters: commonVoterFeatureLevel(voterIds(now.record), known),
      },
    }
  }

  async #carryOut(step: ReconcileStep): Promise<void> {
    const { clock, log } = this.#deps
    try {
      const done = await this.#do(step)
      log.info({ step: step.type }, done)
      await this.#record(step)
    } catch (error) {
      this.#heldUntilMs.set(step.type, clock.monotonicMs() + BACK_OFF_MS)
      // Rethrowing an unexpected error would stop this controller, and then the next leaders with
      // the same error. Therefore all errors are only logged.
      const code = error instanceof Problem ? error.code : 'UNHANDLED'
      // These errors are normal while another change or a change of leader is in progress.
      if (code === 'MEMBERSHIP_BUSY' || code === 'CLUSTER_NO_LEADER') return
      if (!this.#throttle.allow(`${step.type} ${code}`, clock.monotonicMs())) return
      const reason = errorMessage(error)
      log.warn({ step: step.type, code, err: error }, `${nameOf(step)} waits: ${reason}`)
    }
  }

  /** Records only steps that are not commands, because the state machine audits commands anyway. */
  async #record(step: ReconcileStep): Promise<void> {
    const { actions } = this.#deps
    if (step.type === 'promote') {
      const reason = 'it has caught up'
      for (const target of step.ids) {
        await actions.note(
          { action: 'member-promote', target, outcome: 'done', reason },
          SYSTEM_ACTOR,
        )
      }
    }
    if (step.type !== 'drop') return
    const { id: target, reason } = step
    await actions.note({ action: 'member-remove', target, outcome: 'done', reason }, SYSTEM_ACTOR)
  }

  /**
   * Carries out a step.
   * @returns the line for the log.
   */
  async #do(step: ReconcileStep): Promise<string> {
    switch (step.type) {
      case 'settle':
        return await this.#settle(step.departure)
      case 'promote':
        await this.#change(nameOf(step), (record) => promoted(record, step.ids))
        return `promoted ${step.ids.join(', ')} to ${step.ids.length === 1 ? 'voter' : 'voters'}`
      case 'rotate':
        await this.#deps.secrets.rotateIfDue('a removed controller had access to it')
        return 'rotated the shared secrets that a removed controller had access to'
      case 'share':
        if (!(await this.#deps.secrets.wrapMissingSecrets())) throw new Problem(...NOTHING_TO_SHARE)
        return 'distributed shared secrets to members that lacked them'
      case 'raise':
        await this.#deps.featureLevel.raise(step.level)
        return `raised the feature level to ${step.level}; versions that do not support it can no longer join`
      case 'drop':
        return await this.#drop(step)
    }
  }

  async #settle(departure: Departure): Promise<string> {
    const { id, compromised: isCompromised } = departure
    const { secrets, state } = this.#deps
    const admission = findAdmission(state, id)
    // True if the id was admitted again with another key: a former leader deleted the first
    // admission but did not finish the removal.
    const isAdmittedAgain =
      admission !== undefined && !isSameMemberKey(departure, admissionKeySha256(admission))
    await secrets.afterRemoval(id, { isCompromised, isAdmittedAgain })
    await this.#change(`finishing the removal of ${id}`, (record) => settled(record, departure))
    return `finished the removal of ${id}: admission revoked, shared secrets rotated`
  }

  /** Removes the member in the same way as an operator's request. */
  async #drop({ id, reason }: Extract<ReconcileStep, { type: 'drop' }>): Promise<string> {
    const { consensus, state } = this.#deps
    await this.#change(`dropping ${id}`, (record) => {
      const now = { ...takeMembershipSnapshot(consensus, state), record }
      const planned = planMembershipChange(now, { verb: 'remove', id, isCompromised: false })
      if (!planned.ok) throw new Problem(planned.code, { detail: planned.reason })
      return planned.target
    })
    return `removed ${id}, because ${reason}; join it again with a new ticket`
  }

  async #change(
    what: string,
    edit: (record: ConfigurationRecord) => ConfigurationRecord,
  ): Promise<void> {
    await this.#deps.changer.run({
      what,
      waitMs: 0,
      timeoutMs: STEP_TIMEOUT_MS,
      isDone: ({ record }) => equals(ConfigurationSchema, record, edit(record)),
      target: ({ record }) => edit(record),
    })
  }
}

function promoted(record: ConfigurationRecord, ids: readonly NodeId[]): ConfigurationRecord {
  const target = clone(ConfigurationSchema, record)
  // A member that was demoted or removed meanwhile is skipped.
  for (const member of target.members) {
    if (member.promote && ids.includes(member.id)) makeVoter(member)
  }
  return target
}

/**
 * Removes a completed departure from the configuration.
 * @returns the configuration without the departure record. The record stays if an operator has
 * meanwhile declared the removed member compromised: that removal is not complete yet.
 */
function settled(record: ConfigurationRecord, departure: Departure): ConfigurationRecord {
  const target = clone(ConfigurationSchema, record)
  target.departed = target.departed.filter(
    (known) =>
      known.id !== departure.id ||
      !isSameMemberKey(known, departure.publicKeySha256) ||
      known.compromised !== departure.compromised,
  )
  return target
}

function nameOf(step: ReconcileStep): string {
  switch (step.type) {
    case 'settle':
      return `finishing the removal of ${step.departure.id}`
    case 'promote':
      return `promoting ${step.ids.join(', ')}`
    case 'rotate':
      return 'rotating shared secrets'
    case 'share':
      return 'distributing shared secrets'
    case 'raise':
      return `raising the feature level to ${step.level}`
    case 'drop':
      return `dropping ${step.id}`
  }
}

function connectedIds(consensus: MembershipConsensus): readonly NodeId[] {
  return consensus.peerStatuses().flatMap(({ id, isConnected }) => (isConnected ? [id] : []))
}
