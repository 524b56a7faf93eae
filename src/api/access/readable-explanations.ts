import type { Terminator } from '../../entities/kinds/terminator.ts'
import type { PostureCheck } from '../../entities/kinds/posture-check.ts'
import type { Service } from '../../entities/kinds/service.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import { findEntity } from '../../entities/registry.ts'
import { serviceConfigHolder } from '../../entities/kinds/service-config.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { KindName, RecordOf } from '../../entities/kind-records.ts'
import { interceptFaults } from '../../lib/intercept/intercept-target.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { PostureService } from '../../ports/posture.ts'
import type { EvaluatedPosture } from '../../ports/evaluated-posture.ts'
import type {
  AccessExplanation,
  ExplainedRight,
  LimitedList,
  LinkingPolicy,
} from '../../fsm/access/explanation.ts'
import type { StateReader } from '../../fsm/state-reader.ts'
import type { DialBind, StateView } from '../../ports/state-view.ts'
import { rfc3339Text } from '../http/responses/envelope.ts'
import {
  accessObstacles,
  type AccessObstacle,
  type AccessObstacleInputs,
} from './access-obstacles.ts'
import type { CallerReadPermissions } from './caller-read-permissions.ts'

export const explanationViewLimits = {
  /**
   * Maximum API sessions per identity whose posture is evaluated; the newest sessions are chosen.
   */
  explainedSessionsMax: 10,
  /**
   * Maximum common edge routers that an explanation lists, online routers first; the total includes
   * all common routers.
   */
  shownRoutersMax: 25,
  /**
   * Maximum terminators that an explanation lists, online terminators first; the total includes all
   * terminators.
   */
  shownTerminatorsMax: 25,
} as const

interface ExplanationViewDeps {
  readonly state: StateView & Pick<StateReader, 'explainAccess'>
  readonly posture: PostureService
  readonly nowMs: number
}

/** An API session with the evaluated posture of its client. */
interface JudgedSession {
  readonly session: ApiSession
  readonly posture: EvaluatedPosture
}

interface JudgedSessions {
  readonly total: number
  readonly newest: readonly JudgedSession[]
}

/** The explanations in one response, without the parts that the caller may not read. */
export class ReadableExplanations {
  readonly #deps: ExplanationViewDeps
  readonly #readable: CallerReadPermissions
  /** Evaluated API sessions, by identity; all pairs with the same identity share them. */
  readonly #sessions = new Map<string, JudgedSessions>()

  constructor(deps: ExplanationViewDeps, readable: CallerReadPermissions) {
    this.#deps = deps
    this.#readable = readable
  }

  of(identity: Identity, service: Service): JsonObject {
    const found = this.#deps.state.explainAccess(identity, service)
    const sessions = this.#sessionsOf(identity.id)
    const terminators = this.#terminators(found.terminators)
    const [dial, bind] = found.rights
    return {
      identity: this.#refOf('identity', identity),
      service: this.#refOf('service', service),
      identityState: this.#identityState(found, sessions),
      dial: this.#right(dial, found, sessions, terminators),
      bind: this.#right(bind, found, sessions, terminators),
      routers: this.#readable.only('router.read', () => this.#routers(found)),
      terminators: this.#readable.only('terminator.read', () => terminators.shown()),
      sessions: this.#readable.only('ops.read', () => this.#shownSessions(found, sessions)),
      configs: this.#readable.only('config.read', () => this.#configs(found)),
      withheld: this.#readable.withheld(),
    }
  }

  #sessionsOf(identityId: string): JudgedSessions {
    const known = this.#sessions.get(identityId)
    if (known !== undefined) return known
    const { state, posture } = this.#deps
    const all = state.findAll('apiSession', 'identityId', identityId)
    const newest = [...all]
      .sort((a, b) => b.createdAt - a.createdAt)
      .slice(0, explanationViewLimits.explainedSessionsMax)
      .map((session) => ({ session, posture: posture.ofSession(session) }))
    const judged = { total: all.length, newest }
    this.#sessions.set(identityId, judged)
    return judged
  }

  /**
   * A reference to the record. If the record was deleted after the page was read, the reference
   * contains the id and name that were read.
   */
  #refOf(kind: 'identity' | 'service', { id, name }: Identity | Service): JsonObject {
    const entity = findEntity(kind).collection
    return this.#deps.state.ref(kind, id) ?? { _links: {}, entity, id, name: name ?? '' }
  }

  #identityState(found: AccessExplanation, sessions: JudgedSessions): JsonObject {
    const { state, nowMs } = this.#deps
    const { identity } = found
    const { logIn } = found
    const { authPolicyId } = identity
    const policy = state.get('authPolicy', authPolicyId)
    return {
      isDisabled: isDisabled(identity, nowMs),
      disabledUntil: identity.disabledUntil === null ? null : rfc3339Text(identity.disabledUntil),
      isAdmin: identity.isAdmin,
      canLogIn: logIn === 'some',
      hasOutstandingEnrollment: this.#isEnrolling(identity.id),
      authPolicy:
        policy === undefined
          ? null
          : this.#readable.only('auth-policy.read', () => state.ref('authPolicy', policy.id)),
      hasApiSession: sessions.total > 0,
    }
  }

  #isEnrolling(identityId: string): boolean {
    const { state, nowMs } = this.#deps
    return state
      .findAll('enrollment', 'identityId', identityId)
      .some(({ expiresAt }) => typeof expiresAt !== 'number' || expiresAt > nowMs)
  }

  #right(
    right: ExplainedRight,
    found: AccessExplanation,
    sessions: JudgedSessions,
    terminators: Terminators,
  ): JsonObject {
    // @guard explanation-tells-records--counts
    const missing = accessObstacles(
      this.#facts(right, found, sessions, terminators),
      (permission) => this.#readable.has(permission),
    )
    return {
      isGranted: right.isGranted,
      isReachable: missing.length === 0,
      endsAt: this.#readable.only('service-policy.read', () =>
        right.endsAtMs === null ? null : rfc3339Text(right.endsAtMs),
      ),
      policiesCount: this.#readable.only('service-policy.read', () => right.granting.total),
      policies: this.#readable.only('service-policy.read', () =>
        right.granting.first.map((link) => ({
          ...this.#link('servicePolicy', link),
          ...this.#checks(link.checks, sessions),
        })),
      ),
      missing: missing.map((piece) => this.#piece(piece)),
      // @guard explanation-tells-records--nearest
      nearestPolicy: this.#readable.only('service-policy.read', () => this.#nearest(right)),
    }
  }

  #nearest({ nearest }: ExplainedRight): JsonObject | null {
    if (nearest === null) return null
    const { policy, identityLacks, serviceLacks } = nearest
    return { ...this.#deps.state.ref('servicePolicy', policy.id), identityLacks, serviceLacks }
  }

  #facts(
    { type, isGranted, ended, granting, ofIdentity, ofService }: ExplainedRight,
    found: AccessExplanation,
    sessions: JudgedSessions,
    terminators: Terminators,
  ): AccessObstacleInputs {
    const { identity } = found
    const { state, nowMs } = this.#deps
    const onlineRouterIds = found.commonRouters.first.flatMap(({ id }) =>
      state.isRouterOnline(id) ? id : [],
    )
    return {
      type,
      identity,
      service: found.service,
      isDisabled: isDisabled(identity, nowMs),
      logIn: found.logIn,
      isEnrolling: this.#isEnrolling(identity.id),
      hasApiSession: sessions.total > 0,
      isGranted,
      ended,
      ofIdentity,
      ofService,
      failingChecks: this.#failingChecks(found, type, granting, sessions),
      identityRouterCount: found.identityRouterCount,
      serviceRouterCount: found.serviceRouterCount,
      commonRouters: found.commonRouters,
      onlineRouterIds,
      // The tunnel of a router dials with the identity that has the router's id. This identity can
      // reach its router even if the router has no edge listener.
      isAnyRouterReachable: onlineRouterIds.some(
        (id) => id === identity.id || state.mayServeClients(id),
      ),
      terminatorCount: found.terminators.total,
      isAnyTerminatorOnline: terminators.isAnyOnline,
    }
  }

  /**
   * Posture checks that fail in the newest API sessions; empty if one of these sessions has access,
   * if the identity has no session, or if no granting policy has checks.
   */
  #failingChecks(
    { identity, service }: AccessExplanation,
    type: ExplainedRight['type'],
    granting: ExplainedRight['granting'],
    { newest }: JudgedSessions,
  ): readonly string[] {
    if (newest.length === 0 || !granting.first.some(({ checks }) => checks.total > 0)) return []
    const wanted = { identityId: identity.id, serviceId: service.id, type }
    const failing = new Set<string>()
    for (const { posture } of newest) {
      const failures = this.#deps.posture.failures(wanted, posture)
      if (failures.length === 0) return []
      for (const { checks } of failures) for (const { id } of checks) failing.add(id)
    }
    return [...failing].sort()
  }

  #piece({ code, message, kind, ids }: AccessObstacle): JsonObject {
    const { state } = this.#deps
    const records = this.#readable.only(readPermissions[kind], () =>
      ids.flatMap((id) => state.ref(kind, id) ?? []),
    )
    return { code, message, records: records ?? [] }
  }

  #link(kind: KindName, { policy, roles }: LinkingPolicy): JsonObject {
    return {
      ...this.#deps.state.ref(kind, policy.id),
      semantic: policy.semantic,
      ...roles,
    }
  }

  #checks({ total, first }: LimitedList<PostureCheck>, { newest }: JudgedSessions): JsonObject {
    const checks = this.#readable.only('posture-check.read', () =>
      first.map((check) => {
        const passing = newest.filter(({ posture }) => posture.passes(check)).length
        const failing = newest.length - passing
        return {
          ...this.#deps.state.ref('postureCheck', check.id),
          typeId: check.typeId,
          state: newest.length === 0 ? 'unknown' : passing > 0 ? 'passes' : 'fails',
          passing,
          failing,
        }
      }),
    )
    return { checks, checksCount: checks === null ? null : total }
  }

  #routers(found: AccessExplanation): JsonObject {
    const { state } = this.#deps
    const policiesOf = (kind: KindName, { first }: LimitedList<LinkingPolicy>): JsonObject[] =>
      first.map((link) => this.#link(kind, link))
    const { first, total } = found.commonRouters
    const shown = onlineFirst(
      first.map(({ id }) => ({ id, isOnline: state.isRouterOnline(id) })),
      explanationViewLimits.shownRoutersMax,
    )
    return {
      identityCount: found.identityRouterCount,
      serviceCount: found.serviceRouterCount,
      commonCount: total,
      onlineCount: first.filter(({ id }) => state.isRouterOnline(id)).length,
      common: shown.map((router) => ({
        ...state.ref('edgeRouter', router.id),
        isOnline: router.isOnline,
        isVerified: state.get('edgeRouter', router.id)?.isVerified === true,
      })),
      identityPolicies: this.#readable.only('edge-router-policy.read', () =>
        policiesOf('edgeRouterPolicy', found.edgeRouterPolicies),
      ),
      servicePolicies: this.#readable.only('service-edge-router-policy.read', () =>
        policiesOf('serviceEdgeRouterPolicy', found.serviceEdgeRouterPolicies),
      ),
    }
  }

  #terminators({ total, first }: LimitedList<Terminator>): Terminators {
    const { state } = this.#deps
    const seen = first.map((record) => ({
      record,
      isOnline: state.isRouterOnline(record.routerId),
    }))
    const shown = (): JsonObject => ({
      totalCount: total,
      onlineCount: seen.filter((one) => one.isOnline).length,
      items: onlineFirst(seen, explanationViewLimits.shownTerminatorsMax).map(
        ({ record, isOnline: online }) => ({
          ...state.ref('terminator', record.id),
          address: record.address,
          binding: record.binding,
          router: this.#readable.only('router.read', () =>
            state.ref('transitRouter', record.routerId),
          ),
          isOnline: online,
        }),
      ),
    })
    // If not all terminators were checked, assumes that the router of an unchecked one is online.
    const isAnyOnline = total > first.length || seen.some((one) => one.isOnline)
    return { isAnyOnline, shown }
  }

  #shownSessions(
    { identity, service, rights }: AccessExplanation,
    { total, newest }: JudgedSessions,
  ): JsonObject {
    const granted = new Set(rights.flatMap(({ type, isGranted }) => (isGranted ? [type] : [])))
    const pair = { identityId: identity.id, serviceId: service.id }
    return {
      totalCount: total,
      items: newest.map(({ session, posture }) => {
        const passes = (type: DialBind): boolean | null =>
          granted.has(type)
            ? this.#deps.posture.failures({ ...pair, type }, posture).length === 0
            : null
        return {
          id: session.id,
          createdAt: rfc3339Text(session.createdAt),
          passesForDial: passes('Dial'),
          passesForBind: passes('Bind'),
        }
      }),
    }
  }

  /** Parts of a config that Flotilla's tunnels do not intercept. */
  #notIntercepted(config: RecordOf<'config'>): readonly string[] {
    const known = faultsOfConfigs.get(config)
    if (known !== undefined) return known
    const type = this.#deps.state.get('configType', config.configTypeId)
    const faults = interceptFaults(type?.name ?? '', config.data)
    faultsOfConfigs.set(config, faults)
    return faults
  }

  /** The configs of the service, followed by the configs that override them for the identity. */
  #configs({ identity, service }: AccessExplanation): JsonObject[] {
    const { state } = this.#deps
    const own = state
      .findAll('serviceConfig', 'holder', serviceConfigHolder(identity.id, service.id))
      .map(({ configId }) => [String(configId), 'identity'] as const)
    const given = service.configs.map((id) => [id, 'service'] as const)
    return [...given, ...own].flatMap(([id, source]) => {
      const config = state.get('config', id)
      if (config === undefined) return []
      const type = this.#readable.only('config-type.read', () =>
        state.ref('configType', config.configTypeId),
      )
      const notIntercepted = this.#notIntercepted(config)
      return [{ ...state.ref('config', id), type, source, notIntercepted }]
    })
  }
}

/**
 * Cached faults by config record, because many pairs share a config. A change of a config creates a
 * new record object, for which the faults are computed again.
 */
const faultsOfConfigs = new WeakMap<RecordOf<'config'>, readonly string[]>()

interface Terminators {
  readonly isAnyOnline: boolean
  shown(): JsonObject
}

/** Permissions to read the records that an obstacle to access names. */
const readPermissions = {
  identity: 'identity.read',
  service: 'service.read',
  servicePolicy: 'service-policy.read',
  postureCheck: 'posture-check.read',
  edgeRouter: 'router.read',
} as const

function onlineFirst<T extends { readonly isOnline: boolean }>(
  all: readonly T[],
  max: number,
): T[] {
  return [...all].sort((a, b) => Number(b.isOnline) - Number(a.isOnline)).slice(0, max)
}
