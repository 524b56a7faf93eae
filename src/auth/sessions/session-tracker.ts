import { create, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  SessionExpireSchema,
  SessionTouchSchema,
} from '../../../proto/gen/command_pb.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import { sessionValidity } from '../../fsm/apply/session-validity.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import { Problem } from '../../lib/problems.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { SessionWithIdentity, SessionPrincipal } from '../principal/principal.ts'
import { type Clock, proposalNowMs, earlierOfLocalAndQuorumNowMs } from '../../lib/clock.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { PeriodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import type { OpenSoftTopic } from '../../ports/soft-topics.ts'

/** A session with its identity, or the reason why it cannot be used. */
export type SessionLookup = SessionWithIdentity | 'unknown' | 'expired' | 'refused'
/** Limits of sessions, listed in docs/internals/limits.md. */
interface SessionLimits {
  readonly sessionTimeoutMs: number
  /**
   * Time after which an unused OIDC session expires; equal to the lifetime of its refresh token.
   */
  readonly refreshTokenMs: number
  /** Maximum lifetime of an OIDC session from its log-in, however often it is refreshed. */
  readonly oidcSessionMsMax: number
  readonly staleSessionMsMax: number
  readonly activityFlushMs: number
  readonly activityLogMs: number
  readonly activityMoveMs: number
  readonly activityBatchMax: number
  readonly activitySessionsMax: number
  readonly sweepMs: number
  readonly sweepBatchMax: number
}

/**
 * A recorded use counts as ahead of the clock if it is later than the current time by more than
 * this.
 */
const AHEAD_MS_MAX = 60_000

interface SessionTrackerDeps {
  readonly state: StateView
  readonly cluster: ClusterView
  readonly proposer: Proposer
  readonly clock: Clock
  readonly scheduler: PeriodicScheduler
  readonly logger: ServiceLogger
  readonly activity: OpenSoftTopic<'activity'>
  readonly limits: SessionLimits
}

/**
 * Decides which sessions this controller accepts. The sessions are in the replicated state. The
 * time of a session's last use is kept in memory and shared with the other controllers as soft
 * state, because a log entry per request would cost more than the request. The leader writes the
 * collected times to the log periodically, so that they are not lost when all controllers stop.
 */
export class SessionTracker {
  readonly #parts: SessionTrackerDeps
  /** Time of the last known use at any controller, by session id, UTC ms. */
  readonly #lastUses = new Map<string, number>()
  /** Sessions used at this controller since it last published their use. */
  readonly #usedHere = new Set<string>()
  #stops: (() => void)[] = []
  #isLogging = false
  #isSweeping = false
  #leadsSinceMs: number | null = null

  constructor(parts: SessionTrackerDeps) {
    this.#parts = parts
    parts.activity.onChange((_owner, sessionId, atMs) => {
      // A later time than the present counts as the present, because a clock that is ahead at
      // another controller must not prolong a session here.
      if (atMs !== undefined) this.#note(sessionId, Math.min(atMs, parts.clock.nowMs()))
    })
  }

  start(): void {
    const { scheduler, limits, state } = this.#parts
    state.showUses(this)
    this.#stops = [
      scheduler.every(limits.activityFlushMs, () => {
        this.spreadActivity()
      }),
      scheduler.every(limits.activityLogMs, () => void this.logActivity()),
      scheduler.every(limits.sweepMs, () => void this.sweep()),
    ]
  }

  stop(): void {
    for (const stop of this.#stops) stop()
    this.#stops = []
    this.spreadActivity()
  }

  /**
   * Looks up a session in the local state. `unknown` and `expired` may be outdated, because a
   * log-in or a use on another controller may not have arrived yet; callers need not check
   * `refused` against the latest state.
   * @throws {Problem} CLUSTER_NO_LEADER when this controller has had no contact with a leader for
   * too long to accept any session.
   */
  find(sessionId: string): SessionLookup {
    const { state, cluster, limits, clock } = this.#parts
    if (cluster.leaderContactMs() > limits.staleSessionMsMax) {
      throw new Problem('CLUSTER_NO_LEADER', {
        detail: 'this controller had no contact with the cluster for too long to validate sessions',
      })
    }
    const standing = sessionValidity(state.recordsNow, sessionId)
    if (standing === null) return 'unknown'
    const { session, identity } = standing
    if (clock.nowMs() > this.expiresAtMs(session)) return 'expired'
    // Reads the clock only for the few identities that are disabled until a certain time.
    if (identity.disabledAt !== null && isDisabled(identity, proposalNowMs(this.#parts))) {
      return 'refused'
    }
    // @guard sessions-of-a-disabled-signer--gate
    if (!standing.isHonored) return 'refused'
    return standing
  }

  /** Records a use of the session. */
  use(sessionId: string): void {
    this.#note(sessionId, this.#parts.clock.nowMs())
    this.#usedHere.add(sessionId)
  }

  /**
   * Records which API accepts an OIDC session, at its first use. The request continues only after
   * that entry is applied.
   * @throws {Problem} when there is no leader.
   */
  async settle(sessionId: string, api: 'client' | 'management'): Promise<void> {
    await this.#mark(sessionId, { api })
  }

  /**
   * Records in the replicated state that a client renewed its tokens, before the client gets the
   * new tokens. After that, the code of the session cannot be redeemed again.
   * @throws {Problem} when there is no leader.
   */
  async noteRenewal(sessionId: string): Promise<void> {
    await this.#mark(sessionId, { isRenewal: true })
  }

  async #mark(
    sessionId: string,
    mark: { readonly api: 'client' | 'management' } | { readonly isRenewal: true },
  ): Promise<void> {
    const { proposer, clock } = this.#parts
    const marks = [{ id: sessionId, atMs: BigInt(clock.nowMs()), ...mark }]
    await proposer.propose({
      kind: CommandKind.SESSION_TOUCH,
      payload: toBinary(SessionTouchSchema, create(SessionTouchSchema, { marks })),
      actor: SYSTEM_ACTOR,
    })
  }

  forget(sessionId: string): void {
    this.#lastUses.delete(sessionId)
    this.#usedHere.delete(sessionId)
    this.#parts.activity.withdraw(sessionId)
  }

  lastUseMs(session: Pick<ApiSession, 'id' | 'createdAt' | 'lastActivityAt'>): number {
    return Math.max(this.#lastUses.get(session.id) ?? 0, storedUseMs(session))
  }

  expiresAtMs(session: ApiSession): number {
    const { limits } = this.#parts
    const lastUseMs = Math.max(this.#lastUses.get(session.id) ?? 0, storedUseMs(session))
    const { codeHash, createdAt } = session
    // The condition includes sessions that were created before feature level 2, which have no
    // `codeHash`.
    if (!codeHash) return lastUseMs + limits.sessionTimeoutMs
    return Math.min(lastUseMs + limits.refreshTokenMs, createdAt + limits.oidcSessionMsMax)
  }

  /**
   * Publishes the last use of each session that was used at this controller, if it is later than
   * the published use and the use in the log by more than `activityMoveMs`.
   */
  spreadActivity(): void {
    const { state, limits, activity, cluster } = this.#parts
    for (const id of this.#usedHere) {
      const session = state.get('apiSession', id)
      const atMs = this.#lastUses.get(id)
      if (session === undefined || atMs === undefined) continue
      const publishedMs = Math.max(storedUseMs(session), activity.get(cluster.selfId, id) ?? 0)
      if (atMs - publishedMs > limits.activityMoveMs) activity.publish(id, atMs)
    }
    this.#usedHere.clear()
  }

  /**
   * On the leader, proposes each last use that is later than the one in the log by more than
   * `activityMoveMs`; on other controllers, only drops outdated uses.
   */
  async logActivity(): Promise<void> {
    if (this.#isLogging) return
    this.#isLogging = true
    const { cluster, limits, proposer } = this.#parts
    try {
      const marks = this.#marksToLog()
      if (cluster.leaderId() !== cluster.selfId) return
      for (let at = 0; at < marks.length; at += limits.activityBatchMax) {
        const batch = marks.slice(at, at + limits.activityBatchMax)
        const message = create(SessionTouchSchema, { marks: batch })
        await proposer.propose({
          kind: CommandKind.SESSION_TOUCH,
          payload: toBinary(SessionTouchSchema, message),
          actor: SYSTEM_ACTOR,
        })
      }
    } catch (error) {
      this.#logUnexpected(error, 'cannot replicate session activity')
    } finally {
      this.#isLogging = false
    }
  }

  /**
   * Replaces recorded uses that are later than the current time by more than `AHEAD_MS_MAX` with
   * the current time. Such uses were recorded while the local clock was ahead; they would keep
   * their sessions alive until the recorded time, and hide later uses from the other controllers.
   */
  #bringBackUses(): void {
    const { activity, clock, cluster } = this.#parts
    const nowMs = earlierOfLocalAndQuorumNowMs(this.#parts) ?? clock.nowMs()
    for (const [id, atMs] of this.#lastUses) {
      if (atMs <= nowMs + AHEAD_MS_MAX) continue
      this.#lastUses.set(id, nowMs)
      // @guard clock-of-the-leader--told
      if ((activity.get(cluster.selfId, id) ?? 0) > nowMs) activity.withdraw(id)
    }
  }

  /**
   * The uses that must be written to the log. Drops uses of ended sessions, and uses that the log
   * already contains.
   */
  #marksToLog(): { id: string; atMs: bigint }[] {
    const { state, limits, activity, cluster } = this.#parts
    // @guard clock-of-the-leader--uses
    this.#bringBackUses()
    const marks: { id: string; atMs: bigint }[] = []
    for (const [id, atMs] of this.#lastUses) {
      const session = state.get('apiSession', id)
      const storedMs = session === undefined ? Infinity : storedUseMs(session)
      if ((activity.get(cluster.selfId, id) ?? Infinity) <= storedMs) activity.withdraw(id)
      if (atMs <= storedMs) this.#lastUses.delete(id)
      else if (atMs - storedMs > limits.activityMoveMs) marks.push({ id, atMs: BigInt(atMs) })
    }
    return marks
  }

  #note(sessionId: string, atMs: number): void {
    const known = this.#lastUses.get(sessionId)
    if (known === undefined && this.#lastUses.size >= this.#parts.limits.activitySessionsMax) {
      for (const [oldest] of this.#lastUses) {
        this.forget(oldest)
        break
      }
    }
    if (known === undefined || atMs > known) this.#lastUses.set(sessionId, atMs)
  }

  /**
   * Removes sessions that have expired, if this controller has been the leader long enough to know
   * the uses at other controllers. Each removal command contains the last use and the expiry time
   * on which the decision is based; the state machine keeps the session if it was used since, or if
   * log time has not reached the expiry.
   */
  async sweep(): Promise<void> {
    const { cluster, clock, state, limits, proposer } = this.#parts
    if (cluster.leaderId() !== cluster.selfId) {
      this.#leadsSinceMs = null
      return
    }
    this.#leadsSinceMs ??= clock.monotonicMs()
    const spreadMs = limits.activityMoveMs + 2 * limits.activityFlushMs
    if (this.#isSweeping || clock.monotonicMs() - this.#leadsSinceMs < spreadMs) return
    // @guard clock-of-the-leader--majority
    const nowMs = earlierOfLocalAndQuorumNowMs(this.#parts)
    if (nowMs === null) return
    const beforeMs = nowMs - spreadMs
    const marks = state
      .sessionsThat((session) => this.expiresAtMs(session) < beforeMs, limits.sweepBatchMax)
      .map(({ id, lastActivityMs }) => this.#expiryMark(id, lastActivityMs))
    if (marks.length === 0) return
    this.#isSweeping = true
    try {
      const payload = toBinary(SessionExpireSchema, create(SessionExpireSchema, { marks }))
      await proposer.propose({ kind: CommandKind.SESSION_EXPIRE, payload, actor: SYSTEM_ACTOR })
    } catch (error) {
      this.#logUnexpected(error, 'cannot remove expired sessions')
    } finally {
      this.#isSweeping = false
    }
  }

  #expiryMark(id: string, lastActivityMs: number) {
    const session = this.#parts.state.get('apiSession', id)
    const expiresAtMs = session === undefined ? 0 : this.expiresAtMs(session)
    return { id, lastActivityMs: BigInt(lastActivityMs), expiresAtMs: BigInt(expiresAtMs) }
  }

  /**
   * Logs an error, unless it is a {@link Problem}, such as a missing leader, which is normal; the
   * next run tries again.
   */
  #logUnexpected(error: unknown, message: string): void {
    if (error instanceof Problem) return
    this.#parts.logger.error({ err: error }, message)
  }
}

interface EndDeps {
  readonly sessions: Pick<SessionTracker, 'expiresAtMs'>
  readonly clock: Clock
  readonly limits: Pick<SessionLimits, 'sessionTimeoutMs'>
}

/**
 * When the caller's access expires: the expiry of its access token or, without one, the expiry of
 * its session if no further request uses the session.
 */
export function callerAccessExpiry(
  { sessions, clock, limits }: EndDeps,
  { session, accessToken }: Pick<SessionPrincipal, 'session' | 'accessToken'>,
): { readonly expiresAtMs: number; readonly leftSeconds: number } {
  if (accessToken === undefined) {
    const leftSeconds = Math.round(limits.sessionTimeoutMs / 1000)
    return { expiresAtMs: sessions.expiresAtMs(session), leftSeconds }
  }
  const { expiresAtMs } = accessToken
  return { expiresAtMs, leftSeconds: Math.max(0, Math.floor((expiresAtMs - clock.nowMs()) / 1000)) }
}

function storedUseMs({
  lastActivityAt,
  createdAt,
}: Pick<ApiSession, 'createdAt' | 'lastActivityAt'>): number {
  return lastActivityAt ?? createdAt
}
