import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, ServiceSessionEndSchema } from '../../proto/gen/command_pb.ts'
import type { ApiSession } from '../entities/kinds/api-session.ts'
import type { Session } from '../entities/kinds/session.ts'
import type { KindName } from '../entities/kind-records.ts'
import { type Clock, earlierOfLocalAndQuorumNowMs } from '../lib/clock.ts'
import { Problem, fieldProblem } from '../lib/problems.ts'
import { SYSTEM_ACTOR } from '../ports/actor.ts'
import type { ChangeFeed } from '../ports/change-feed.ts'
import type { ClusterView } from '../ports/cluster-view.ts'
import { deviceFactKinds, type Posture, type PostureReport } from '../ports/posture.ts'
import type { EvaluatedPosture } from '../ports/evaluated-posture.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { StateView } from '../ports/state-view.ts'
import { identityPostureChecks, lazyEvaluatedPosture, postureFailures } from './posture-access.ts'
import { passesPostureCheck } from './posture-evaluation.ts'
import type { PostureReports } from './posture-reports.ts'

interface EnforcerLimits {
  /** Interval between two periodic sweeps. */
  readonly sweepMs: number
  /** Maximum service sessions that the leader checks in one sweep, rounded up to whole slices. */
  readonly postureLooksMax: number
  /** Maximum service sessions that one command ends. */
  readonly postureEndsMax: number
  /**
   * Grace period in which a client can report its posture: after the leader's election, after
   * reports were lost, and after an OIDC client without reports got a service session. Checks of
   * the second factor apply even in this period, because the replicated state contains the time of
   * the last code.
   */
  readonly postureGraceMs: number
  /** Maximum identities per sweep that are checked for reports without an API session. */
  readonly posturePrunesMax: number
}

type Fields = Readonly<Record<string, unknown>>

export interface PostureEnforcerDeps {
  readonly feed: ChangeFeed
  readonly state: StateView
  readonly cluster: Pick<ClusterView, 'leaderId' | 'selfId' | 'quorumClockMs'>
  readonly proposer: Proposer
  readonly clock: Clock
  /** @returns a function that stops the repetition. */
  readonly scheduler: { every(periodMs: number, run: () => void): () => void }
  readonly limits: EnforcerLimits
  readonly logger: {
    warn(fields: Fields, message: string): void
    error(fields: Fields, message: string): void
  }
  readonly reports: PostureReports
  /**
   * Resolves when this controller has all reports that the reachable controllers received, or after
   * a short timeout.
   */
  readonly reachLatest: () => Promise<void>
  /**
   * Posture of an API session: the reports about its identity, and the session's second factor.
   */
  readonly postureOf: (session: ApiSession) => SessionPosture
}

/**
 * Posture of an API session. `factor` is always present, even if the session has no second factor.
 */
export type SessionPosture = Posture & Required<Pick<Posture, 'factor'>>

/** Kinds of records whose changes start a sweep, because sessions may then fail checks. */
const followed: readonly KindName[] = ['postureCheck', 'servicePolicy']
/** Minimum time between two sweeps that changes of records start. */
const FOLLOW_MS_MIN = 1000

/** Maximum sessions that are checked before other work on the event loop can run. */
const SLICE = 250

/**
 * Ends service sessions whose client no longer passes the posture checks. The controller that
 * receives a report immediately ends the sessions that fail because of this report. In addition,
 * the leader checks all service sessions periodically, and after changes of checks or policies.
 * The periodic sweeps are necessary because the failure of a controller loses its reports, and
 * second factors time out.
 */
export class PostureEnforcer {
  readonly #deps: PostureEnforcerDeps
  #stop: () => void = () => undefined
  #isSweeping = false
  /** Id of the session that the leader checked last; the next sweep continues after it. */
  #lookedAt = ''
  #leadsSinceMs: number | null = null
  /** Monotonic ms of the last sweep that a change of records started. */
  #followedMs = -Infinity
  /**
   * For each identity, the time (monotonic ms) at which the reports of another controller about it
   * were lost or withdrawn. The client may repeat them during a grace period. New reports start no
   * grace period: otherwise a client that reports continuously would never be checked.
   */
  readonly #lostMs = new Map<string, number>()

  constructor(deps: PostureEnforcerDeps) {
    this.#deps = deps
    deps.reports.onLost((identityId) => {
      this.#lostMs.delete(identityId)
      this.#lostMs.set(identityId, deps.clock.monotonicMs())
    })
  }

  start(): void {
    const { feed, scheduler, limits } = this.#deps
    const onChange = (): void => this.#sweepSoon()
    const unfollow = feed.follow(followed, { onEntry: onChange, onReplaced: onChange })
    const stopTimer = scheduler.every(limits.sweepMs, () => void this.sweep())
    this.#stop = () => {
      unfollow()
      stopTimer()
    }
  }

  /**
   * Starts a sweep after the current entry is applied. Further changes within the next second wait
   * for the periodic sweep.
   */
  #sweepSoon(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    if (nowMs - this.#followedMs < FOLLOW_MS_MIN) return
    this.#followedMs = nowMs
    setImmediate(() => void this.sweep())
  }

  stop(): void {
    this.#stop()
  }

  /**
   * Stores the reports. Resolves when the caller's sessions that fail because of these reports have
   * ended, or when the attempt to end them fails, for example without a leader; then a later sweep
   * ends them.
   * @throws {Problem} COULD_NOT_VALIDATE when the reports exceed the size limit per identity;
   * SERVER_TOO_MANY_REQUESTS when this controller has no room for the reports.
   */
  async report(session: ApiSession, made: readonly PostureReport[]): Promise<void> {
    const { reports, postureOf, logger, reachLatest } = this.#deps
    const { identityId } = session
    // Waits for reports at other controllers, because the new report must get a higher version than
    // earlier reports.
    await reachLatest()
    const before = postureOf(session)
    const outcome = reports.report(identityId, session.id, made)
    if (outcome === 'same') return
    if (outcome === 'tooLarge') {
      throw fieldProblem('body', 'posture data exceeds 32 KiB per identity')
    }
    if (outcome === 'full') {
      logger.warn({}, 'no room for posture data; posture responses are refused with 429')
      throw new Problem('SERVER_TOO_MANY_REQUESTS')
    }
    const after = { ...reports.of(identityId, session.id), factor: before.factor }
    await this.#follow(identityId, { before, after, hasWoken: made.some(isEndpoint) })
  }

  /**
   * Publishes for clients that the set of passing checks has changed, or that the device woke or
   * was unlocked and a check then requires a new code. If a check fails that passed before, ends
   * the sessions that now fail.
   */
  async #follow(
    identityId: string,
    moved: { readonly before: Posture; readonly after: Posture; readonly hasWoken: boolean },
  ): Promise<void> {
    const checks = identityPostureChecks(this.#deps.state, identityId)
    const failed = checks.filter(
      (check) => passesPostureCheck(check, moved.before) && !passesPostureCheck(check, moved.after),
    )
    const passed = checks.filter(
      (check) => !passesPostureCheck(check, moved.before) && passesPostureCheck(check, moved.after),
    )
    const isPrompted = checks.some((check) => check.promptOnWake || check.promptOnUnlock)
    const isSame = failed.length === 0 && passed.length === 0
    if (isSame && !(moved.hasWoken && isPrompted)) return
    this.#deps.reports.noteMove(identityId)
    if (failed.length > 0) await this.#endFailingOf(identityId)
  }

  /**
   * Called after a user enters a code or MFA is removed, because checks for a second factor may
   * then pass or fail.
   */
  async factorMoved(identityId: string): Promise<void> {
    const { state, reports } = this.#deps
    if (!identityPostureChecks(state, identityId).some(({ typeId }) => typeId === 'MFA')) return
    reports.noteMove(identityId)
    await this.#endFailingOf(identityId)
  }

  async #endFailingOf(identityId: string): Promise<void> {
    const sessions = this.#deps.state.findAll('session', 'identityId', identityId)
    for (let at = 0; at < sessions.length; at += SLICE) {
      if (at > 0) await nextTurn()
      await this.#end(this.#failing(sessions.slice(at, at + SLICE)))
    }
  }

  async sweep(): Promise<void> {
    if (this.#isSweeping) return
    this.#isSweeping = true
    try {
      this.#prune()
      await this.#look()
    } finally {
      this.#isSweeping = false
    }
  }

  /** Drops reports of ended API sessions, replaced reports, and grace periods that have ended. */
  #prune(): void {
    const { state, reports, limits, clock } = this.#deps
    for (const identityId of reports.reportedHere(limits.posturePrunesMax)) {
      const sessions = state.findAll('apiSession', 'identityId', identityId)
      reports.keepOnly(identityId, new Set(sessions.map(({ id }) => id)))
    }
    const graceEndsMs = clock.monotonicMs() - limits.postureGraceMs
    for (const [identityId, lostMs] of this.#lostMs) {
      if (lostMs > graceEndsMs) break
      this.#lostMs.delete(identityId)
    }
  }

  async #look(): Promise<void> {
    const { cluster, clock, state, limits } = this.#deps
    if (cluster.leaderId() !== cluster.selfId) {
      this.#leadsSinceMs = null
      return
    }
    if (this.#leadsSinceMs === null) {
      // The first sweep ends no session, because a new leader may not have applied all entries yet.
      this.#leadsSinceMs = clock.monotonicMs()
      return
    }
    const isNew = clock.monotonicMs() - this.#leadsSinceMs < limits.postureGraceMs
    if (state.count('postureCheck') === 0) return
    for (let looks = 0; looks < limits.postureLooksMax; looks += SLICE) {
      const sessions = state.serviceSessionsAfter(this.#lookedAt, SLICE)
      const settled = isNew ? [] : sessions.filter((session) => this.#isSettled(session))
      const unsettled = sessions.filter((session) => !settled.includes(session))
      const failing = (): string[] => [
        ...this.#failing(settled),
        ...this.#failing(unsettled, this.#factorOnlyOf),
      ]
      // Gets the latest reports before sessions are ended: a report that another controller
      // received, and with which the client would pass, may not have arrived here yet.
      if (failing().length > 0) await this.#deps.reachLatest()
      await this.#end(failing())
      this.#lookedAt = sessions.length < SLICE ? '' : (sessions.at(-1)?.id ?? '')
      if (this.#lookedAt === '') return
      await nextTurn()
    }
  }

  /** Posture in which only the second factor can fail a check. */
  readonly #factorOnlyOf = (session: ApiSession): SessionPosture => ({
    ...this.#deps.postureOf(session),
    judgedByRouter: deviceFactKinds,
  })

  /**
   * Whether a sweep may check the session's device reports now, not only its second factor. An OIDC
   * client gets its service session before it connects to the router to which it reports its
   * posture. During the grace period, the reports of such a client are therefore not checked until
   * some exist; dials are refused until then.
   */
  #isSettled({ identityId, apiSessionId, createdAt }: Session): boolean {
    const { limits, state, reports } = this.#deps
    if (this.#lostMs.has(identityId)) return false
    const ageMs = (earlierOfLocalAndQuorumNowMs(this.#deps) ?? createdAt) - createdAt
    if (ageMs >= limits.postureGraceMs) return true
    const isOfOidc = state.get('apiSession', apiSessionId)?.clientId
    return !isOfOidc || !reports.isUnheardOf(identityId)
  }

  /** Ends sessions. If no leader answers, a later sweep tries again. */
  async #end(ids: readonly string[]): Promise<void> {
    const { proposer, limits, logger } = this.#deps
    try {
      for (let at = 0; at < ids.length; at += limits.postureEndsMax) {
        const message = { ids: ids.slice(at, at + limits.postureEndsMax) }
        await proposer.propose({
          kind: CommandKind.SERVICE_SESSION_END,
          payload: toBinary(ServiceSessionEndSchema, create(ServiceSessionEndSchema, message)),
          actor: SYSTEM_ACTOR,
        })
      }
    } catch (error) {
      if (error instanceof Problem) return
      logger.error({ err: error }, 'cannot end sessions of clients that fail posture checks')
    }
  }

  /**
   * IDs of the sessions for which there are policies, but no policy whose checks all pass.
   */
  #failing(sessions: readonly Session[], postureOf = this.#deps.postureOf): string[] {
    const { state } = this.#deps
    const known = new Map<string, EvaluatedPosture>()
    return sessions
      .filter((session) => {
        const apiSession = state.get('apiSession', session.apiSessionId)
        if (apiSession === undefined) return false
        const posture =
          known.get(apiSession.id) ?? lazyEvaluatedPosture(() => postureOf(apiSession))
        known.set(apiSession.id, posture)
        return postureFailures(state, session, posture).length > 0
      })
      .map(({ id }) => id)
  }
}

/** Resolves in the next turn of the event loop, so that other work can run first. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function isEndpoint({ kind }: PostureReport): boolean {
  return kind === 'endpoint'
}
