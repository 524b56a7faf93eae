import type { Identity } from '../../entities/kinds/identity.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { Service } from '../../entities/kinds/service.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'
import type { DialBind } from '../../ports/state-view.ts'
import { isEffectivePolicy, matchesRoles, allPoliciesSelecting } from '../records/roles.ts'
import type { State } from '../records/state.ts'

/**
 * The expiries because of which an identity may no longer dial or bind a service; without these
 * expiries, a policy would grant the right.
 */
export interface ExpiredGrants {
  /**
   * Expired policies that select both records, in id order; expired role attributes of the identity
   * count as if it still had them.
   */
  readonly policies: readonly ServicePolicy[]
  /** Expired role attributes of the identity with which a policy would select the identity. */
  readonly attributes: readonly { readonly attribute: string; readonly atMs: number }[]
}

function endsOf({ roleAttributesExpireAt }: Identity): ReadonlyMap<string, number> {
  return new Map(
    Object.entries(roleAttributesExpireAt).map(([attribute, end]) => [
      attribute,
      dateTimeMs(String(end)) ?? Infinity,
    ]),
  )
}

/** Finds the expiries because of which an identity may no longer dial or bind a service. */
export function findExpiredGrants(
  state: State,
  identity: Identity,
  service: Service,
  type: DialBind,
): ExpiredGrants {
  const ended = [...endsOf(identity)].filter(([one]) => !identity.roleAttributes.includes(one))
  const names = ended.map(([attribute]) => attribute)
  const former = { ...identity, roleAttributes: [...identity.roleAttributes, ...names] }
  const table = state.table('servicePolicy')
  const linking = allPoliciesSelecting(table, 'serviceRoles', service).filter(
    (policy) => policy.type === type && matchesRoles(former, policy.identityRoles, policy.semantic),
  )
  const lacking = linking.filter(
    (policy) =>
      isEffectivePolicy(policy) && !matchesRoles(identity, policy.identityRoles, policy.semantic),
  )
  const needed = new Set(lacking.flatMap(({ identityRoles }) => identityRoles))
  return {
    policies: linking.filter((policy) => !isEffectivePolicy(policy)),
    attributes: ended
      .filter(([attribute]) => needed.has(`#${attribute}`))
      .map(([attribute, atMs]) => ({ attribute, atMs })),
  }
}

/**
 * Time at which the last of the granting policies stops granting the right to the identity, UTC ms;
 * null: the right does not expire, or there are no granting policies.
 */
export function grantExpiryMs(
  identity: Identity,
  granting: readonly ServicePolicy[],
): number | null {
  const ends = endsOf(identity)
  const latest = Math.max(...granting.map((policy) => grantEndMs(identity, ends, policy)))
  return Number.isFinite(latest) ? latest : null
}

function grantEndMs(
  { id }: Identity,
  ends: ReadonlyMap<string, number>,
  { identityRoles, semantic, expiresAt }: ServicePolicy,
): number {
  const policyMs = expiresAt ?? Infinity
  if (identityRoles.includes('#all') || identityRoles.includes(`@${id}`)) return policyMs
  const attributes = identityRoles.flatMap((role) => (role.startsWith('#') ? role.slice(1) : []))
  const times = attributes.map((attribute) => ends.get(attribute) ?? Infinity)
  return Math.min(policyMs, semantic === 'AnyOf' ? Math.max(...times) : Math.min(...times))
}
