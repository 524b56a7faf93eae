import type { ApiSession } from '../entities/kinds/api-session.ts'
import { earlierOfLocalAndQuorumNowMs } from '../lib/clock.ts'
import { Problem } from '../lib/problems.ts'
import {
  deviceFactKinds,
  type EndpointState,
  type FailedRequest,
  type GrantedRight,
  type Posture,
  type PostureFailure,
  type PostureReport,
  type PostureService,
  type StoredFactor,
} from '../ports/posture.ts'
import type { EvaluatedPosture } from '../ports/evaluated-posture.ts'
import type { SoftState } from '../ports/soft-topics.ts'
import type { EvaluatedPostureCheck, PromptedService, CodePrompts } from '../ports/state-view.ts'
import { FailedRequestLog } from './failed-request-log.ts'
import { mfaTimeoutAtMs } from './factor-evaluation.ts'
import {
  identityPostureChecks,
  grantingPostureChecks,
  lazyEvaluatedPosture,
  postureFailures,
  servicesSoonRequiringCode,
} from './posture-access.ts'
import {
  type PostureEnforcerDeps,
  PostureEnforcer,
  type SessionPosture,
} from './posture-enforcer.ts'
import { PostureReports } from './posture-reports.ts'
import { isInVersionRange } from '../lib/text/version-match.ts'
import { canonicalJson, type JsonObject } from '../lib/text/canonical-json.ts'

interface ControllerPostureDeps extends Omit<
  PostureEnforcerDeps,
  'reports' | 'postureOf' | 'reachLatest'
> {
  readonly soft: Pick<SoftState, 'open' | 'reachLatest'>
}

/**
 * Posture component of a controller: receives reports, evaluates checks, and ends sessions that
 * fail the checks.
 */
export class ControllerPosture implements PostureService {
  readonly #deps: ControllerPostureDeps
  readonly #reports: PostureReports
  readonly #failedRequests: FailedRequestLog
  readonly #enforcer: PostureEnforcer

  constructor(deps: ControllerPostureDeps) {
    const { soft, cluster, clock } = deps
    this.#deps = deps
    this.#reports = new PostureReports(cluster.selfId, soft.open('posture'), clock)
    this.#failedRequests = new FailedRequestLog(cluster.selfId, soft.open('failed-requests'))
    this.#enforcer = new PostureEnforcer({
      ...deps,
      reports: this.#reports,
      reachLatest: () => soft.reachLatest(),
      postureOf: (session) => this.#enforcedOf(session),
    })
  }

  start(): void {
    this.#enforcer.start()
  }

  stop(): void {
    this.#enforcer.stop()
  }

  of(identityId: string): Posture {
    return this.#reports.of(identityId)
  }

  endpointsOf(identityId: string): ReadonlyMap<string, EndpointState> {
    return this.#reports.endpointsOf(identityId)
  }

  factorOf(session: ApiSession): StoredFactor {
    return this.#factorAt(session, this.#deps.clock.nowMs())
  }

  #factorAt(session: ApiSession, nowMs: number): StoredFactor {
    const { state } = this.#deps
    const of = session
    const endpoint = this.#reports.endpointsOf(of.identityId).get(of.id)
    const sdkInfo = state.get('identity', of.identityId)?.sdkInfo
    return sessionFactor(of, endpoint, sdkInfo, nowMs)
  }

  ofIdentity(identityId: string): EvaluatedPosture {
    return lazyEvaluatedPosture(() => this.#reports.of(identityId))
  }

  ofSession(session: ApiSession): EvaluatedPosture {
    return lazyEvaluatedPosture(() => this.#postureOf(session))
  }

  ofSessionAtJudge(session: ApiSession): EvaluatedPosture {
    return lazyEvaluatedPosture(() => ({
      ...this.#postureOf(session),
      judgedByRouter: deviceFactKinds,
    }))
  }

  notedAtJudge(session: ApiSession, routerId: string): void {
    const { identityId, id } = session
    // If the report exceeds a limit, a sweep of the leader may end the session, and the client
    // dials again.
    this.#reports.report(identityId, id, [{ kind: 'router', routerId }])
  }

  isNotedAtJudge({ identityId, id }: ApiSession, routerId: string): boolean {
    return this.#reports.isPublished(identityId, id, [{ kind: 'router', routerId }])
  }

  #postureOf(session: ApiSession): SessionPosture {
    const { identityId } = session
    return { ...this.#reports.of(identityId), factor: this.factorOf(session) }
  }

  /**
   * Posture used to end sessions; it includes the results that the router reported. Timeouts of
   * second factors are compared with the clocks of a majority, not only with this controller's
   * clock.
   */
  #enforcedOf(session: ApiSession): SessionPosture {
    const { identityId, id } = session
    // @guard clock-of-the-leader--factor
    const factor = this.#factorAt(session, earlierOfLocalAndQuorumNowMs(this.#deps) ?? 0)
    return { ...this.#reports.of(identityId, id), factor }
  }

  moves(identityId: string): number {
    return this.#reports.moves(identityId)
  }

  lapsedAt(session: ApiSession): number {
    const { identityId, mfaPassedAt } = session
    if (mfaPassedAt === null) return 0
    const factor = this.factorOf(session)
    const checks = identityPostureChecks(this.#deps.state, identityId)
    const ofFactor = checks.filter(({ typeId }) => typeId === 'MFA')
    return Math.max(0, ...ofFactor.map((check) => mfaTimeoutAtMs(check, factor)))
  }

  report(session: ApiSession, reports: readonly PostureReport[]): Promise<void> {
    return this.#enforcer.report(session, reports)
  }

  reachLatest(): Promise<void> {
    return this.#deps.soft.reachLatest()
  }

  factorMoved(identityId: string): Promise<void> {
    return this.#enforcer.factorMoved(identityId)
  }

  failures(wanted: GrantedRight, posture: EvaluatedPosture): readonly PostureFailure[] {
    return postureFailures(this.#deps.state, wanted, posture)
  }

  grantingChecks(
    wanted: GrantedRight,
    posture: EvaluatedPosture,
  ): readonly EvaluatedPostureCheck[] {
    return grantingPostureChecks(this.#deps.state, wanted, posture)
  }

  promptedServices(session: ApiSession, prompts: CodePrompts): readonly PromptedService[] {
    const { identityId } = session
    return servicesSoonRequiringCode(this.#deps.state, identityId, prompts, this.factorOf(session))
  }

  refused(
    { identityId, ...wanted }: GrantedRight & { readonly apiSessionId: string },
    failures: readonly PostureFailure[],
    cause: Problem,
  ): Problem {
    const { state, clock } = this.#deps
    const name = state.get('service', wanted.serviceId)?.name
    const { request, problem } = refusal(failures, cause)
    this.#failedRequests.note(identityId, {
      apiSessionId: wanted.apiSessionId,
      serviceId: wanted.serviceId,
      sessionType: wanted.type,
      atMs: clock.nowMs(),
      serviceName: name ?? '',
      policyFailures: request,
    })
    return problem
  }

  failedRequests(identityId: string): readonly FailedRequest[] {
    return this.#failedRequests.of(identityId)
  }
}

/** Second factor of an API session at the time `nowMs`. */
function sessionFactor(
  { mfaPassedAt }: ApiSession,
  endpoint: EndpointState | undefined,
  sdkInfo: unknown,
  nowMs: number,
): StoredFactor {
  return {
    passedAtMs: mfaPassedAt ?? null,
    wokenAtMs: endpoint?.wokenAtMs ?? null,
    unlockedAtMs: endpoint?.unlockedAtMs ?? null,
    nowMs,
    isLegacyClient: isLegacy(sdkInfo),
  }
}

/**
 * The only OpenZiti SDK that supports timeouts of second factors, and its first version that does.
 */
const TIMED_SDK = { type: 'ziti-sdk-c', versions: '>=0.25.0' } as const

function isLegacy(sdkInfo: unknown): boolean {
  const { type, version } = (sdkInfo ?? {}) as {
    readonly type?: unknown
    readonly version?: unknown
  }
  if (type !== TIMED_SDK.type || typeof version !== 'string') return true
  return !isInVersionRange(version.replace(/^v/, ''), TIMED_SDK.versions)
}

/** A failed request whose record is larger is stored without the values of its checks. */
const FAILURE_CHARACTERS_MAX = 8192

/**
 * The response to a client whose request is refused, and the failures for the record of the
 * request.
 */
function refusal(
  failures: readonly PostureFailure[],
  cause: Problem,
): { readonly problem: Problem; readonly request: readonly JsonObject[] } {
  const causeData = Object.fromEntries(
    failures.map(({ policyId, checks }) => [
      policyId,
      checks.map(({ id, typeId }) => ({ id, typeId, isPassing: false })),
    ]),
  )
  return {
    problem: new Problem('INVALID_POSTURE', { causeData, cause }),
    request: shownFailures(failures),
  }
}

/** The failures, as the record of a failed request contains them. */
function shownFailures(failures: readonly PostureFailure[]): JsonObject[] {
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
