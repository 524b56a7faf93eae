import type { PostureCheck } from '../../entities/posture-check.ts'
import type { ServicePolicy } from '../../entities/service-policy.ts'
import { members } from '../roles.ts'
import type { State } from '../state.ts'

/** A policy whose posture checks do not all pass, with the checks. */
export interface PostureFailure {
  readonly policyId: string
  readonly checks: readonly PostureCheck[]
}

/** The posture checks that a policy asks for, in id order. */
export function checksOf(state: State, policy: ServicePolicy): PostureCheck[] {
  const { postureCheckRoles: roles, semantic } = policy
  if (roles.length === 0) return []
  return [...members(state, 'postureCheck', [{ roles, semantic }])].flatMap(
    (id) => state.get<PostureCheck>('postureCheck', id) ?? [],
  )
}

/**
 * What keeps the policies from granting; [] when one of them grants. A policy with checks grants only where `passing` names
 * it: whoever judged the client's posture says so, and nobody is taken at less than that.
 */
export function postureFailures(
  state: State,
  policies: readonly ServicePolicy[],
  passing: ReadonlySet<string>,
): PostureFailure[] {
  const failures: PostureFailure[] = []
  for (const policy of policies) {
    const checks = checksOf(state, policy)
    if (checks.length === 0 || passing.has(policy.id)) return []
    failures.push({ policyId: policy.id, checks })
  }
  return failures
}
