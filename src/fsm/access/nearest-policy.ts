import type { Identity } from '../../entities/kinds/identity.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { Service } from '../../entities/kinds/service.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { matchesRoles, recordRoleAttributes } from '../records/roles.ts'

export const nearestPolicyLimits = {
  /**
   * Maximum policies that are compared to find the nearest one: this many of those that select the
   * identity, and this many of those that select the service.
   */
  comparedPoliciesMax: 200,
} as const

/**
 * The policy that needs the fewest additional role attributes to grant a right that no policy
 * grants.
 */
export interface NearestPolicy {
  readonly policy: ServicePolicy
  /**
   * Role attributes that the identity lacks for the policy to select it; [] if the policy already
   * selects it.
   */
  readonly identityLacks: readonly string[]
  readonly serviceLacks: readonly string[]
}

/**
 * The policy that would grant the right with the fewest additional role attributes; null if role
 * attributes alone are not sufficient for any policy.
 * @param near policies of the matching type that select one of the two records.
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
    if (nearest === null || isNearer(found, nearest)) nearest = found
  }
  return nearest
}

/**
 * Whether a policy needs fewer role attributes, or as many but fewer of them on the service: a new
 * attribute of a service grants the service to all identities that the policy selects.
 */
function isNearer(found: NearestPolicy, than: NearestPolicy): boolean {
  const difference = lackCount(found) - lackCount(than)
  return difference === 0 ? found.serviceLacks.length < than.serviceLacks.length : difference < 0
}

function lackCount({ identityLacks, serviceLacks }: NearestPolicy): number {
  return identityLacks.length + serviceLacks.length
}

/**
 * Role attributes that a record lacks for a role list to select it; null if the list contains no
 * role attribute.
 */
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
