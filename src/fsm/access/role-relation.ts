import type { KindName } from '../../entities/kind-records.ts'
import type { AccessRight } from './access-difference.ts'
import {
  unorderedIdsSelectedByRoles,
  isEffectivePolicy,
  activePoliciesSelecting,
  type Policy,
  type RoleList,
} from '../records/roles.ts'
import type { State } from '../records/state.ts'

type PolicyKind = 'servicePolicy' | 'edgeRouterPolicy' | 'serviceEdgeRouterPolicy'

/**
 * One side of a relation: the kind of its records, and the role list with which a policy selects
 * them.
 */
export interface RelationSide {
  readonly kind: KindName
  readonly field: string
}

/**
 * A right that policies of one kind grant to pairs of records. A policy grants it to each pair
 * whose two records it selects.
 */
export interface RoleRelation {
  readonly right: AccessRight
  readonly policyKind: PolicyKind
  /** Only policies with this type grant the right; null if the policies have no types. */
  readonly type: string | null
  readonly left: RelationSide
  readonly other: RelationSide
}

const identities = { kind: 'identity', field: 'identityRoles' } as const
const services = { kind: 'service', field: 'serviceRoles' } as const
const routers = { kind: 'edgeRouter', field: 'edgeRouterRoles' } as const

export const roleRelations: readonly RoleRelation[] = [
  {
    right: 'dial',
    policyKind: 'servicePolicy',
    type: 'Dial',
    left: identities,
    other: services,
  },
  {
    right: 'bind',
    policyKind: 'servicePolicy',
    type: 'Bind',
    left: identities,
    other: services,
  },
  {
    right: 'router',
    policyKind: 'edgeRouterPolicy',
    type: null,
    left: identities,
    other: routers,
  },
  {
    right: 'serviceRouter',
    policyKind: 'serviceEdgeRouterPolicy',
    type: null,
    left: services,
    other: routers,
  },
]

/** The policy with this id, if it has not expired and can grant the right of the relation. */
export function findRelationPolicy(
  state: State,
  { policyKind, type }: RoleRelation,
  id: string,
): Policy | undefined {
  const policy: Policy | undefined = state.get(policyKind, id)
  if (policy === undefined || !isEffectivePolicy(policy)) return undefined
  return type === null || policy['type'] === type ? policy : undefined
}

export function policyRolesForSide({ field }: RelationSide, policy: Policy): RoleList {
  return { roles: policy[field] as readonly string[], semantic: policy.semantic }
}

type Ids = ReturnType<typeof unorderedIdsSelectedByRoles>

/** The ids of the records on which a record has the right; empty for an unknown record. */
export function relatedIds(
  state: State,
  { policyKind, type }: RoleRelation,
  { kind, field }: RelationSide,
  id: string,
  to: RelationSide,
): Ids {
  const record = state.get(kind, id)
  if (record === undefined) return new Set()
  const table = state.table(policyKind)
  const policies = activePoliciesSelecting<Policy>(table, field, record).filter(
    (policy) => type === null || policy['type'] === type,
  )
  return unorderedIdsSelectedByRoles(
    state,
    to.kind,
    policies.map((policy) => policyRolesForSide(to, policy)),
  )
}
