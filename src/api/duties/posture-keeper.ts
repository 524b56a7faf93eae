import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, ServiceSessionEndSchema } from '../../../proto/gen/command_pb.ts'
import { canonicalJson } from '../../lib/canonical-json.ts'
import type { JsonObject } from '../../lib/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import type { Posture, PostureReport } from '../../ports/posture.ts'
import type { DialBind, PostureFailureView } from '../../ports/state-view.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { Caller } from '../call.ts'
import type { ApiParts } from '../parts.ts'
import { factorOfSession, postureOfSession } from '../records/session-posture.ts'

type KeeperParts = Pick<
  ApiParts,
  | 'state'
  | 'cluster'
  | 'proposer'
  | 'clock'
  | 'scheduler'
  | 'limits'
  | 'logger'
  | 'posture'
  | 'failedRequests'
>

/** Sessions looked at between two turns of the event loop. */
const SLICE = 250
/** A failed request whose checks ask for much is kept without what they ask for. */
const FAILURE_CHARACTERS_MAX = 8192

/** A session that was asked for. */
interface Wanted {
  readonly apiSessionId: string
  readonly identityId: string
  readonly serviceId: string
  readonly type: DialBind
}

/**
 * Holds service sessions to what their clients tell of themselves. Whichever controller is told something by which a client
 * no longer passes ends what it was let to use. The leader goes round all service sessions beside that: checks and policies
 * change too, and what was told can be lost with the controller that it was told to.
 */
export class PostureKeeper {
  readonly #parts: KeeperParts
  #stop: () => void = () => undefined
  #isSweeping = false
  /** Where the round of the leader stands. */
  #lookedAt = ''
  #leadsSinceMs: number | null = null
  /**
   * When what was told elsewhere went, monotonic: it may be told again in a moment. What comes earns no such grace, or whoever
   * tells again and again would never be looked at.
   */
  readonly #lostMs = new Map<string, number>()

  constructor(parts: KeeperParts) {
    this.#parts = parts
    parts.posture.onLost((identityId) => {
      this.#lostMs.delete(identityId)
      this.#lostMs.set(identityId, parts.clock.monotonicMs())
    })
  }

  start(): void {
    const { scheduler, limits } = this.#parts
    this.#stop = scheduler.every(limits.sweepMs, () => void this.sweep())
  }

  stop(): void {
    this.#stop()
  }

  /**
   * Resolves when the sessions that it costs the caller are ended, as far as there is a leader to end them.
   * @throws {Problem} COULD_NOT_VALIDATE for more than is kept of one identity; SERVER_TOO_MANY_REQUESTS when this
   * controller has no room for it.
   */
  async tell({ session, identity }: Caller, reports: readonly PostureReport[]): Promise<void> {
    const { state, posture, logger } = this.#parts
    const factor = factorOfSession(this.#parts, session)
    const toldBefore = posture.of(identity.id)
    const outcome = posture.tell(identity.id, session.id, reports)
    if (outcome === 'same') return
    if (outcome === 'tooLarge') {
      throw fieldProblem('body', 'posture data exceeds 32 KiB per identity')
    }
    if (outcome === 'full') {
      logger.warn({}, 'posture data is full; new posture responses are refused with 429')
      throw new Problem('SERVER_TOO_MANY_REQUESTS')
    }
    const before = state.passingChecks(identity.id, { ...toldBefore, factor })
    const after = state.passingChecks(identity.id, { ...posture.of(identity.id), factor })
    const hasWoken = reports.some(({ kind }) => kind === 'endpoint')
    const isSame = before.length === after.length && before.every((id, at) => id === after[at])
    if (isSame && !(hasWoken && state.isPromptedOnWake(identity.id))) return
    posture.noteMove(identity.id)
    const passing = new Set(after)
    if (before.every((id) => passing.has(id))) return
    await this.#endFailingOf(identity.id)
  }

  /** A code was given, or MFA ended: checks that ask for a second factor may pass now, or fail. */
  async factorMoved(identityId: string): Promise<void> {
    const { state, posture } = this.#parts
    if (!state.needsFactor(identityId)) return
    posture.noteMove(identityId)
    await this.#endFailingOf(identityId)
  }

  async #endFailingOf(identityId: string): Promise<void> {
    const sessions = this.#parts.state.findAll('session', 'identityId', identityId)
    for (let at = 0; at < sessions.length; at += SLICE) {
      await this.#endFailing(sessions.slice(at, at + SLICE))
    }
  }

  /** Takes note of a session that posture checks stood against. @returns what its client is told. */
  refused(wanted: Wanted, failures: readonly PostureFailureView[], cause: Problem): Problem {
    const { state, clock, failedRequests } = this.#parts
    const { identityId, apiSessionId, serviceId, type: sessionType } = wanted
    const name = state.get('service', serviceId)?.['name']
    failedRequests.note(identityId, {
      ...{ apiSessionId, serviceId, sessionType },
      atMs: clock.nowMs(),
      serviceName: typeof name === 'string' ? name : '',
      policyFailures: shownFailures(failures),
    })
    const causeData = Object.fromEntries(
      failures.map(({ policyId, checks }) => [
        policyId,
        checks.map(({ id, typeId }) => ({ id, typeId, isPassing: false })),
      ]),
    )
    return new Problem('INVALID_POSTURE', { causeData, cause })
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

  /** What machines told lives no longer than the sessions that they told it in. */
  #prune(): void {
    const { state, posture, limits, clock } = this.#parts
    for (const identityId of posture.toldHere(limits.posturePrunesMax)) {
      const sessions = state.findAll('apiSession', 'identityId', identityId)
      posture.keepOnly(identityId, new Set(sessions.map(({ id }) => id)))
    }
    const graceEndsMs = clock.monotonicMs() - limits.postureGraceMs
    for (const [identityId, lostMs] of this.#lostMs) {
      if (lostMs > graceEndsMs) break
      this.#lostMs.delete(identityId)
    }
  }

  async #look(): Promise<void> {
    const { cluster, clock, state, limits } = this.#parts
    if (cluster.leaderId() !== cluster.selfId) {
      this.#leadsSinceMs = null
      return
    }
    this.#leadsSinceMs ??= clock.monotonicMs()
    if (clock.monotonicMs() - this.#leadsSinceMs < limits.postureGraceMs) return
    if (state.count('postureCheck') === 0) return
    for (let looks = 0; looks < limits.postureLooksMax; looks += SLICE) {
      const sessions = state.serviceSessionsAfter(this.#lookedAt, SLICE)
      const settled = sessions.filter((session) => !this.#lostMs.has(String(session['identityId'])))
      await this.#endFailing(settled)
      this.#lookedAt = sessions.length < SLICE ? '' : (sessions.at(-1)?.id ?? '')
      if (this.#lookedAt === '') return
    }
  }

  /**
   * Of a slice of sessions, ends those whose client passes none of the policies that grant them. No leader or no answer is
   * part of life: the next round tries again.
   */
  async #endFailing(sessions: readonly EntityRecord[]): Promise<void> {
    const { proposer, limits, logger } = this.#parts
    const ids = this.#failing(sessions)
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
    await new Promise((go) => setImmediate(go))
  }

  #failing(sessions: readonly EntityRecord[]): string[] {
    const { state } = this.#parts
    const shown = new Map<string, Posture>()
    return sessions
      .filter(({ apiSessionId, identityId, serviceId, type }) => {
        const apiSession = state.get('apiSession', String(apiSessionId))
        if (apiSession === undefined) return false
        const posture = shown.get(apiSession.id) ?? postureOfSession(this.#parts, apiSession)
        shown.set(apiSession.id, posture)
        const granted = [String(identityId), String(serviceId), type as DialBind] as const
        return state.postureFailures(...granted, posture).length > 0
      })
      .map(({ id }) => id)
  }
}

/** As the record of a failed request shows them. */
function shownFailures(failures: readonly PostureFailureView[]): JsonObject[] {
  const shown = (isWhole: boolean): JsonObject[] =>
    failures.map(({ policyId, policyName, checks }) => ({
      policyId,
      policyName,
      checks: checks.map(({ id, name, typeId, values }) => ({
        postureCheckId: id,
        postureCheckName: name,
        postureCheckType: typeId,
        ...(isWhole ? values : {}),
      })),
    }))
  const whole = shown(true)
  return canonicalJson(whole).length <= FAILURE_CHARACTERS_MAX ? whole : shown(false)
}
