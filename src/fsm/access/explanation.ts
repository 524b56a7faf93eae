import type { PostureCheck } from '../../entities/kinds/posture-check.ts'
import type { Terminator } from '../../entities/kinds/terminator.ts'
import type { Service } from '../../entities/kinds/service.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { RecordOf } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { DialBind } from '../../ports/state-view.ts'
import {
  BIND_BIT,
  DIAL_BIT,
  linkingPolicies,
  matchingRoles,
  activePoliciesSelecting,
  type Policy,
} from '../records/roles.ts'
import type { IdScope } from '../records/sorted-ids.ts'
import type { State } from '../records/state.ts'
import { findPolicyPostureChecks, policiesForIdentity } from './policy-posture-checks.ts'
import { grantExpiryMs, findExpiredGrants, type ExpiredGrants } from './expired-grants.ts'
import { type LogInAbility, logInAbility } from './log-in-ability.ts'
import { type RouterOverlap, findRouterOverlap } from './routers.ts'
import type { ClusterState } from './cluster-state.ts'
import { type NearestPolicy, nearestPolicy, nearestPolicyLimits } from './nearest-policy.ts'

/**
 * Limits for the lists in an explanation of the access of one identity to one service. The counts
 * next to the lists are not limited, except that router policies are counted only if they allow one
 * of the first `explainedRoutersMax` routers.
 */
export const explanationLimits = {
  /** Maximum policies in each list of one explanation; further policies are only counted. */
  explainedPoliciesMax: 50,
  /** Maximum posture checks listed for one granting policy; further checks are only counted. */
  explainedChecksMax: 50,
  /**
   * Maximum edge routers, of those that both identity and service may use, for which an explanation
   * lists the policies that allow the use. Policies that allow only further routers are not listed.
   */
  explainedRoutersMax: 25,
  /**
   * Maximum terminators of a service that are checked for an online router; further terminators are
   * not checked.
   */
  explainedTerminatorsMax: 1000,
} as const

/** The first elements of a list, and the number of all elements. */
export interface LimitedList<T> {
  readonly total: number
  readonly first: readonly T[]
}

/**
 * A policy that links two records, and, for each of its role lists, the roles in the list that
 * select one of the two records.
 */
export interface LinkingPolicy {
  readonly policy: Policy
  /** Matching roles by field, such as `identityRoles`. */
  readonly roles: Readonly<Record<string, readonly string[]>>
}

/**
 * Reasons why an identity may or may not dial (or bind) a service. The posture of clients is not
 * considered.
 */
export interface ExplainedRight {
  readonly type: DialBind
  readonly isGranted: boolean
  /**
   * Time at which the last of the granting policies stops granting the right to the identity, UTC
   * ms; null: the right does not expire, or no policy grants it.
   */
  readonly endsAtMs: number | null
  /** Expiries because of which the right was lost; empty if the right is granted. */
  readonly ended: ExpiredGrants
  readonly granting: LimitedList<LinkingPolicy & { readonly checks: LimitedList<PostureCheck> }>
  /** Policies of the matching type that select the identity; empty if the right is granted. */
  readonly ofIdentity: LimitedList<ServicePolicy>
  /** Policies of the matching type that select the service; empty if the right is granted. */
  readonly ofService: LimitedList<ServicePolicy>
  /**
   * The policy that needs the fewest additional role attributes; null if the right is granted, or
   * if attributes cannot help with any policy.
   */
  readonly nearest: NearestPolicy | null
}

/** All information from the records about the access of an identity to a service. */
export interface AccessExplanation {
  readonly identity: Identity
  readonly service: Service
  readonly logIn: LogInAbility
  readonly rights: readonly [dial: ExplainedRight, bind: ExplainedRight]
  readonly identityRouterCount: number
  readonly serviceRouterCount: number
  /** All common edge routers in id order, online or not. */
  readonly commonRouters: LimitedList<RecordOf<'edgeRouter'>>
  /** Edge router policies that link the identity to a common router. */
  readonly edgeRouterPolicies: LimitedList<LinkingPolicy>
  /** Service edge router policies that link the service to a common router. */
  readonly serviceEdgeRouterPolicies: LimitedList<LinkingPolicy>
  readonly terminators: LimitedList<Terminator>
}

/**
 * Explains why an identity may or may not use a service, with the same functions that grant access.
 * Only records are considered, not the posture of devices or the state of connections.
 */
export function explainAccess(
  state: ClusterState,
  identity: Identity,
  service: Service,
): AccessExplanation {
  const linking = linkingPolicies(state, identity, service)
  const bits = state.access.bitsOf(identity, service)
  const right = (type: DialBind): ExplainedRight =>
    explainedRight(state, { identity, service, type, linking, bits })
  const lane = findRouterOverlap(state, identity, service)
  return {
    identity,
    service,
    logIn: logInAbility(state, identity),
    rights: [right('Dial'), right('Bind')],
    identityRouterCount: lane.ofIdentity.size,
    serviceRouterCount: lane.ofService.size,
    commonRouters: firstOf(lane.common, (id) => state.get('edgeRouter', id)),
    edgeRouterPolicies: routerPolicies(state, 'edgeRouterPolicy', 'identityRoles', identity, lane),
    serviceEdgeRouterPolicies: routerPolicies(
      state,
      'serviceEdgeRouterPolicy',
      'serviceRoles',
      service,
      lane,
    ),
    terminators: firstOf(
      state.table('terminator').indexes.ids('serviceId', service.id),
      (id) => state.get('terminator', id),
      explanationLimits.explainedTerminatorsMax,
    ),
  }
}

interface Pair {
  readonly identity: Identity
  readonly service: Service
  readonly type: DialBind
  readonly linking: readonly ServicePolicy[]
  readonly bits: number
}

function explainedRight(
  state: State,
  { identity, service, type, linking, bits }: Pair,
): ExplainedRight {
  const isOfType = (policy: ServicePolicy): boolean => policy.type === type
  const granting = linking.filter(isOfType)
  const isGranted = (bits & (type === 'Bind' ? BIND_BIT : DIAL_BIT)) !== 0
  const shown = granting.slice(0, explanationLimits.explainedPoliciesMax).map((policy) => ({
    ...linkOf(policy, { identityRoles: identity, serviceRoles: service }),
    checks: firstIn(findPolicyPostureChecks(state, policy), explanationLimits.explainedChecksMax),
  }))
  const near = (policies: readonly ServicePolicy[]): readonly ServicePolicy[] =>
    isGranted ? [] : policies.filter(isOfType)
  const ofIdentity = near(policiesForIdentity(state, identity))
  const ofService = near(
    activePoliciesSelecting(state.table('servicePolicy'), 'serviceRoles', service),
  )
  const { comparedPoliciesMax: max } = nearestPolicyLimits
  const compared = [...ofIdentity.slice(0, max), ...ofService.slice(0, max)]
  return {
    type,
    isGranted,
    endsAtMs: grantExpiryMs(identity, granting),
    ended: isGranted
      ? { policies: [], attributes: [] }
      : findExpiredGrants(state, identity, service, type),
    granting: { total: granting.length, first: shown },
    ofIdentity: firstIn(ofIdentity),
    ofService: firstIn(ofService),
    nearest: nearestPolicy(identity, service, compared),
  }
}

/**
 * The policy, and, for each of its role lists, the roles in the list that select the given record.
 */
function linkOf(policy: Policy, sides: Readonly<Record<string, EntityRecord>>): LinkingPolicy {
  const roles = Object.entries(sides).map(([field, record]) => [
    field,
    matchingRoles(record, policy[field] as readonly string[], policy.semantic),
  ])
  return { policy, roles: Object.fromEntries(roles) as LinkingPolicy['roles'] }
}

/**
 * The policies of one kind that link the record to any of the first `explainedRoutersMax` common
 * routers.
 */
function routerPolicies(
  state: State,
  kind: 'edgeRouterPolicy' | 'serviceEdgeRouterPolicy',
  field: string,
  record: EntityRecord,
  { common }: RouterOverlap,
): LimitedList<LinkingPolicy> {
  if (common.size === 0) return firstIn([])
  const routers: EntityRecord[] = []
  for (const id of common) {
    const router = state.get('edgeRouter', id)
    if (router !== undefined) routers.push(router)
    if (routers.length >= explanationLimits.explainedRoutersMax) break
  }
  const links = activePoliciesSelecting<Policy>(state.table(kind), field, record).flatMap(
    (policy) => {
      const means = routers.flatMap((router) =>
        matchingRoles(router, policy['edgeRouterRoles'] as readonly string[], policy.semantic),
      )
      if (means.length === 0) return []
      const { roles } = linkOf(policy, { [field]: record })
      return [{ policy, roles: { ...roles, edgeRouterRoles: [...new Set(means)] } }]
    },
  )
  return firstIn(links, explanationLimits.explainedPoliciesMax)
}

function firstIn<T>(
  all: readonly T[],
  max: number = explanationLimits.explainedPoliciesMax,
): LimitedList<T> {
  return { total: all.length, first: all.slice(0, max) }
}

function firstOf<R>(
  ids: IdScope,
  get: (id: string) => R | undefined,
  max = Infinity,
): LimitedList<R> {
  const first: R[] = []
  for (const id of ids) {
    if (first.length >= max) break
    const record = get(id)
    if (record !== undefined) first.push(record)
  }
  return { total: ids.size, first }
}
