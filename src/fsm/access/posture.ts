import type { PostureCheck } from '../../entities/posture-check.ts'
import type { ServicePolicy } from '../../entities/service-policy.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Posture } from '../../ports/posture.ts'
import { members, policiesMatching } from '../roles.ts'
import type { State } from '../state.ts'
import { passes } from './posture-judge.ts'

/** A policy with those of its posture checks that do not pass. */
export interface PostureFailure {
  readonly policy: ServicePolicy
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
 * What keeps the policies from granting; [] when one of them grants, which is one whose checks all pass. A check that
 * nobody vouches for does not.
 */
export function postureFailures(
  state: State,
  policies: readonly ServicePolicy[],
  isPassing: (check: PostureCheck) => boolean,
): PostureFailure[] {
  const failures: PostureFailure[] = []
  for (const policy of policies) {
    const checks = checksOf(state, policy).filter((check) => !isPassing(check))
    if (checks.length === 0) return []
    failures.push({ policy, checks })
  }
  return failures
}

/** The posture checks that decide what an identity may use, in id order. */
export function checksConcerning(state: State, identity: EntityRecord): PostureCheck[] {
  const policies = policiesMatching<ServicePolicy>(
    state.table('servicePolicy'),
    'identityRoles',
    identity,
  )
  const found = new Map<string, PostureCheck>()
  for (const policy of policies) {
    for (const check of checksOf(state, policy)) found.set(check.id, check)
  }
  return [...found.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

export function isPassingIn(posture: Posture): (check: PostureCheck) => boolean {
  return (check) => passes(check, posture)
}
