import type { EntityRecord } from '../../lib/entity-record.ts'
import { findEntity } from '../../entities/registry.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { requirePresent } from '../../lib/assert.ts'
import {
  activePoliciesSelecting,
  type Policy,
  type RoleList,
  idsSelectedByRoles,
} from '../records/roles.ts'
import { type IdScope, SetScope } from '../records/sorted-ids.ts'
import type { State } from '../records/state.ts'
import type { Table } from '../records/table.ts'

/** The role list with which policies of kind `policyKind` select records of kind `kind`. */
function roleFieldOf(policyKind: KindName, kind: string): string {
  const found = Object.entries(findEntity(policyKind).fields).find(
    ([, field]) => field.kind === 'roleList' && field.reference?.to === kind,
  )
  return requirePresent(found, `${policyKind} has roles of ${kind}`)[0]
}

/** The records of kind `to` that policies of one kind link to a record of kind `from`. */
export function recordsLinkedByPolicies(
  state: State,
  policyKind: KindName,
  from: string,
  record: EntityRecord,
  to: KindName,
): IdScope {
  const other = roleFieldOf(policyKind, to)
  const table = state.table(policyKind) as Table<Policy>
  const policies = activePoliciesSelecting(table, roleFieldOf(policyKind, from), record)
  const lists = policies.map((policy): RoleList => {
    const roles = policy[other] as readonly string[]
    return { roles, semantic: policy.semantic }
  })
  return idsSelectedByRoles(state, to, lists)
}

/** The edge routers that edge router policies allow the identity to use. */
export function routersForIdentity(state: State, identity: EntityRecord): IdScope {
  return recordsLinkedByPolicies(state, 'edgeRouterPolicy', 'identity', identity, 'edgeRouter')
}

/** The identities that may use a router, with the policies that allow it. */
export function identitiesForRouter(
  state: State,
  router: EntityRecord,
): { readonly policyIds: readonly string[]; readonly identities: IdScope } {
  const policies = activePoliciesSelecting(
    state.table('edgeRouterPolicy'),
    'edgeRouterRoles',
    router,
  )
  const lists = policies.map(({ identityRoles: roles, semantic }) => ({ roles, semantic }))
  return {
    policyIds: policies.map(({ id }) => id),
    identities: idsSelectedByRoles(state, 'identity', lists),
  }
}

/** The edge routers that service edge router policies allow for the service. */
export function routersForService(state: State, service: EntityRecord): IdScope {
  return recordsLinkedByPolicies(state, 'serviceEdgeRouterPolicy', 'service', service, 'edgeRouter')
}

/** The edge routers that an identity may use, that a service may use, and that both may use. */
export interface RouterOverlap {
  readonly ofIdentity: IdScope
  readonly ofService: IdScope
  readonly common: IdScope
}

/**
 * Finds the edge routers that the identity may use, that the service may use, and that both may
 * use. A circuit from the identity to the service needs at least one common router.
 */
export function findRouterOverlap(
  state: State,
  identity: EntityRecord,
  service: EntityRecord,
): RouterOverlap {
  const ofIdentity = routersForIdentity(state, identity)
  const ofService = routersForService(state, service)
  const [few, many] =
    ofIdentity.size < ofService.size ? [ofIdentity, ofService] : [ofService, ofIdentity]
  const common = new SetScope(new Set([...few].filter((id) => many.has(id))))
  return { ofIdentity, ofService, common }
}

/** The edge routers through which the identity may reach the service, online or not. */
export function commonRouters(
  state: State,
  identity: EntityRecord,
  service: EntityRecord,
): IdScope {
  return findRouterOverlap(state, identity, service).common
}
