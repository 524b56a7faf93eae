import { create, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  SessionExpireSchema,
  SessionTouchSchema,
} from '../../../proto/gen/command_pb.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { Problem } from '../../lib/problems.ts'
import type { Caller } from '../call.ts'
import type { ApiParts } from '../parts.ts'

export type SessionFinding = Caller | 'unknown' | 'expired' | 'refused'
type KeeperParts = Pick<
  ApiParts,
  'state' | 'cluster' | 'proposer' | 'clock' | 'scheduler' | 'limits' | 'logger'
>

/** Writes of the controller itself, on nobody's behalf. */
const SELF = { identityId: '', sessionId: '', address: '' } as const

/**
 * Sessions as this controller honours them. Who they are stands in the replicated state; when they were last used is
 * kept here in memory and spread in batches, for a log entry per request would cost more than the request.
 */
export class SessionKeeper {
  readonly #parts: KeeperParts
  /** Session id to the last use seen here, UTC ms. */
  readonly #lastUses = new Map<string, number>()
  #stops: (() => void)[] = []
  #isFlushing = false
  #isSweeping = false
  #leadsSinceMs: number | null = null

  constructor(parts: KeeperParts) {
    this.#parts = parts
  }

  start(): void {
    const { scheduler, limits } = this.#parts
    this.#stops = [
      scheduler.every(limits.activityFlushMs, () => void this.flushActivity()),
      scheduler.every(limits.sweepMs, () => void this.sweep()),
    ]
  }

  stop(): void {
    for (const stop of this.#stops) stop()
    this.#stops = []
  }

  /**
   * Synchronous: from what is applied here. `unknown` and `expired` may be news that have not arrived yet (a log-in or a
   * use on another controller); `refused` is final.
   * @throws {Problem} CLUSTER_NO_LEADER when this controller has been out of contact for too long to honour any session.
   */
  find(sessionId: string): SessionFinding {
    const { state, cluster, limits, clock } = this.#parts
    if (cluster.leaderContactMs() > limits.staleSessionMsMax) {
      throw new Problem('CLUSTER_NO_LEADER', {
        detail:
          'this controller has been out of contact for too long to know which sessions still stand',
      })
    }
    const session = state.get('apiSession', sessionId)
    if (session === undefined) return 'unknown'
    if (clock.nowMs() - this.lastUseMs(session) > limits.sessionTimeoutMs) return 'expired'
    const identity = state.get('identity', String(session['identityId']))
    if (identity === undefined || isDisabled(identity, clock.nowMs())) return 'refused'
    return { session, identity, isAdmin: identity['isAdmin'] === true }
  }

  /** Counts as activity. */
  use(sessionId: string): void {
    const { limits, clock } = this.#parts
    if (this.#lastUses.size >= limits.activitySessionsMax && !this.#lastUses.has(sessionId)) {
      for (const [oldest] of this.#lastUses) {
        this.#lastUses.delete(oldest)
        break
      }
    }
    this.#lastUses.set(sessionId, clock.nowMs())
  }

  forget(sessionId: string): void {
    this.#lastUses.delete(sessionId)
  }

  lastUseMs(session: EntityRecord): number {
    return Math.max(this.#lastUses.get(session.id) ?? 0, storedUseMs(session))
  }

  expiresAtMs(session: EntityRecord): number {
    return this.lastUseMs(session) + this.#parts.limits.sessionTimeoutMs
  }

  /** Proposes the activity seen here that the log does not know yet. */
  async flushActivity(): Promise<void> {
    if (this.#isFlushing) return
    this.#isFlushing = true
    try {
      const marks = this.#marksToSpread()
      for (let at = 0; at < marks.length; at += this.#parts.limits.activityBatchMax) {
        const batch = marks.slice(at, at + this.#parts.limits.activityBatchMax)
        const message = create(SessionTouchSchema, { marks: batch })
        await this.#parts.proposer.propose({
          kind: CommandKind.SESSION_TOUCH,
          payload: toBinary(SessionTouchSchema, message),
          actor: SELF,
        })
      }
    } catch (error) {
      this.#logUnexpected(error, 'session activity could not be spread')
    } finally {
      this.#isFlushing = false
    }
  }

  #marksToSpread(): { id: string; atMs: bigint }[] {
    const { state, limits } = this.#parts
    const marks: { id: string; atMs: bigint }[] = []
    for (const [id, atMs] of this.#lastUses) {
      const session = state.get('apiSession', id)
      const storedMs = session === undefined ? null : storedUseMs(session)
      if (storedMs === null || atMs <= storedMs) this.#lastUses.delete(id)
      else if (atMs - storedMs > limits.activityMoveMs) marks.push({ id, atMs: BigInt(atMs) })
    }
    return marks
  }

  /**
   * Removes sessions that nobody uses any more, when this controller leads and has led for long enough to have heard
   * of activity on the others. Each removal names the activity it was judged on, so a use meanwhile saves the session.
   */
  async sweep(): Promise<void> {
    const { cluster, clock, state, limits, proposer } = this.#parts
    if (cluster.leaderId() !== cluster.selfId) {
      this.#leadsSinceMs = null
      return
    }
    this.#leadsSinceMs ??= clock.monotonicMs()
    const spreadMs = 2 * limits.activityFlushMs
    if (this.#isSweeping || clock.monotonicMs() - this.#leadsSinceMs < spreadMs) return
    const beforeMs = clock.nowMs() - limits.sessionTimeoutMs - spreadMs
    const marks = state
      .idleSessions(beforeMs, limits.sweepBatchMax)
      .filter(({ id }) => (this.#lastUses.get(id) ?? 0) < beforeMs)
      .map(({ id, lastActivityMs }) => ({ id, lastActivityMs: BigInt(lastActivityMs) }))
    if (marks.length === 0) return
    this.#isSweeping = true
    try {
      const payload = toBinary(SessionExpireSchema, create(SessionExpireSchema, { marks }))
      await proposer.propose({ kind: CommandKind.SESSION_EXPIRE, payload, actor: SELF })
    } catch (error) {
      this.#logUnexpected(error, 'expired sessions could not be removed')
    } finally {
      this.#isSweeping = false
    }
  }

  /** No leader or no answer is part of life: the next round tries again. */
  #logUnexpected(error: unknown, message: string): void {
    if (error instanceof Problem) return
    this.#parts.logger.error({ err: error }, message)
  }
}

function storedUseMs(session: EntityRecord): number {
  const at = session['lastActivityAt']
  return typeof at === 'number' ? at : session.createdAt
}

function isDisabled(identity: EntityRecord, nowMs: number): boolean {
  const { disabledAt, disabledUntil } = identity as EntityRecord & {
    readonly disabledAt?: unknown
    readonly disabledUntil?: unknown
  }
  if (typeof disabledAt !== 'number') return false
  return typeof disabledUntil !== 'number' || disabledUntil > nowMs
}
