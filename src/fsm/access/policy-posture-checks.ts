import type { PostureCheck } from '../../entities/kinds/posture-check.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { PolicyWithPostureChecks } from '../../ports/state-view.ts'
import { idsSelectedByRoles, activePoliciesSelecting } from '../records/roles.ts'
import type { State } from '../records/state.ts'

/** The posture checks that a policy requires, sorted by id. */
export function findPolicyPostureChecks(state: State, policy: ServicePolicy): PostureCheck[] {
  const { postureCheckRoles: roles, semantic } = policy
  if (roles.length === 0) return []
  return [...idsSelectedByRoles(state, 'postureCheck', [{ roles, semantic }])].flatMap(
    (id) => state.get('postureCheck', id) ?? [],
  )
}

/** Whether at least one of the policies grants the right, because all its posture checks pass. */
export function isGrantedByAnyPolicy(
  state: State,
  policies: readonly ServicePolicy[],
  isPassing: (check: PostureCheck) => boolean,
): boolean {
  return policies.some((policy) => findPolicyPostureChecks(state, policy).every(isPassing))
}

/** Combines a service policy with the posture checks that it requires. */
export function toPolicyWithPostureChecks(
  state: State,
  policy: ServicePolicy,
): PolicyWithPostureChecks {
  const { id, name, serviceRoles: roles, semantic } = policy
  return {
    id,
    name,
    checks: () => findPolicyPostureChecks(state, policy),
    serviceIds: () => idsSelectedByRoles(state, 'service', [{ roles, semantic }]),
  }
}

/** The service policies that select an identity and have not expired. */
export function policiesForIdentity(state: State, identity: EntityRecord): ServicePolicy[] {
  const table = state.table('servicePolicy')
  return activePoliciesSelecting(table, 'identityRoles', identity)
}
