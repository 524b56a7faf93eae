import type { Identity } from '../../entities/kinds/identity.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { Service } from '../../entities/kinds/service.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { matchesRoles, recordRoleAttributes } from '../records/roles.ts'

export const nearestPolicyLimits = {
  /** Policies of each side among which the nearest one is searched. */
  comparedPoliciesMax: 200,
} as const

/** The policy that lacks least to grant a right that no policy grants. */
export interface NearestPolicy {
  readonly policy: ServicePolicy
  /** Role attributes that the record lacks to be in the policy; [] if it is in it. */
  readonly identityLacks: readonly string[]
  readonly serviceLacks: readonly string[]
}

/**
 * The policy that would grant the right with the fewest further role attributes; null if attributes
 * alone lead into none of them.
 * @param near policies of the type that include one of the two records.
 */
export function nearestPolicy(
  identity: Identity,
  service: Service,
  near: readonly ServicePolicy[],
): NearestPolicy | null {
  let nearest: NearestPolicy | null = null
  for (const policy of near) {
    const identityLacks = lackingAttributes(identity, policy.identityRoles, policy.semantic)
    const serviceLacks = lackingAttributes(service, policy.serviceRoles, policy.semantic)
    if (identityLacks === null || serviceLacks === null) continue
    const found = { policy, identityLacks, serviceLacks }
    if (nearest === null || lackCount(found) < lackCount(nearest)) nearest = found
  }
  return nearest
}

function lackCount({ identityLacks, serviceLacks }: NearestPolicy): number {
  return identityLacks.length + serviceLacks.length
}

/** Attributes that a record needs to match a role list; null if the list names only IDs. */
function lackingAttributes(
  record: EntityRecord,
  roles: readonly string[],
  semantic: string,
): readonly string[] | null {
  if (matchesRoles(record, roles, semantic)) return []
  const own = new Set(recordRoleAttributes(record))
  const wanted = roles.flatMap((role) => (role.startsWith('#') ? [role.slice(1)] : []))
  if (wanted.length === 0) return null
  if (semantic === 'AnyOf') return wanted.slice(0, 1)
  return wanted.filter((name) => !own.has(name))
}
