import type { ServicePolicy } from '../entities/service-policy.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import type { State, Table } from './state.ts'

const ALL = '#all'

/** Bits of what policies grant, in the order in which they are shown. */
export const BIND = 1
export const DIAL = 2

/** Services of the fabric alone are matched by no role. */
function isMatchable(record: EntityRecord): boolean {
  return record['isFabricOnly'] !== true
}

function attributesOf(record: EntityRecord): readonly string[] {
  const attributes = record['roleAttributes']
  return Array.isArray(attributes) ? (attributes as readonly string[]) : []
}

function hasAttributes(record: EntityRecord, roles: readonly string[], semantic: string): boolean {
  const own = attributesOf(record)
  let named = 0
  for (const role of roles) {
    if (!role.startsWith('#')) continue
    named += 1
    const has = own.includes(role.slice(1))
    if (has && semantic === 'AnyOf') return true
    if (!has && semantic !== 'AnyOf') return false
  }
  return semantic !== 'AnyOf' && named > 0
}

/**
 * Whether a role list means the record: it is named by `@id`, or the list says `#all`, or AllOf and it has every `#attribute`
 * of at least one, or AnyOf and it has any. Naming by id counts under both semantics.
 */
export function matches(record: EntityRecord, roles: readonly string[], semantic: string): boolean {
  if (!isMatchable(record)) return false
  if (roles.includes(ALL) || roles.includes(`@${record.id}`)) return true
  return hasAttributes(record, roles, semantic)
}

/** Ids with the attributes named, by the index; `all` of them start from the rarest. */
export function idsByAttributes(
  table: Table,
  attributes: readonly string[],
  semantic: string,
): Iterable<string> {
  const postings = attributes.map((name) => table.indexes.ids('roleAttributes', name))
  if (semantic === 'AnyOf') return new Set(postings.flatMap((ids) => [...ids]))
  postings.sort((a, b) => a.size - b.size)
  const [rarest, ...others] = postings
  return [...(rarest ?? [])].filter((id) => others.every((ids) => ids.has(id)))
}

/** Ids of the records that a role list means, each once, in no order. */
export function members(table: Table, roles: readonly string[], semantic: string): Set<string> {
  if (roles.length === 0) return new Set()
  const found = new Set<string>()
  const attributes: string[] = []
  for (const role of roles) {
    if (role.startsWith('#')) attributes.push(role.slice(1))
    else if (table.rows.has(role.slice(1))) found.add(role.slice(1))
  }
  const wide = roles.includes(ALL) ? table.ids : idsByAttributes(table, attributes, semantic)
  for (const id of wide) found.add(id)
  for (const id of found) {
    const record = table.get(id)
    if (record === undefined || !isMatchable(record)) found.delete(id)
  }
  return found
}

/** The policies of the table whose role list `field` means the record, in id order. */
export function policiesMatching<P extends EntityRecord & { readonly semantic: string }>(
  policies: Table,
  field: string,
  record: EntityRecord,
): P[] {
  const roles = [ALL, `@${record.id}`, ...attributesOf(record).map((name) => `#${name}`)]
  const candidates = new Set<string>()
  for (const role of roles) for (const id of policies.indexes.ids(field, role)) candidates.add(id)
  const found: P[] = []
  for (const id of [...candidates].sort()) {
    const policy = policies.get(id) as P | undefined
    const list = policy?.[field] as readonly string[] | undefined
    if (policy === undefined || list === undefined) continue
    if (matches(record, list, policy.semantic)) found.push(policy)
  }
  return found
}

export function bitOf(policy: ServicePolicy): number {
  return policy.type === 'Bind' ? BIND : DIAL
}

/** Service id → bits, of an identity; each policy that means it adds the services that it means. */
export function serviceGrants(state: State, identity: EntityRecord): Map<string, number> {
  const services = state.table('service')
  const grants = new Map<string, number>()
  const policies = policiesMatching<ServicePolicy>(
    state.table('servicePolicy'),
    'identityRoles',
    identity,
  )
  for (const policy of policies) {
    const bit = bitOf(policy)
    for (const id of members(services, policy.serviceRoles, policy.semantic)) {
      grants.set(id, (grants.get(id) ?? 0) | bit)
    }
  }
  return grants
}

/** Identity id → bits, of a service. */
export function identityGrants(state: State, service: EntityRecord): Map<string, number> {
  const identities = state.table('identity')
  const grants = new Map<string, number>()
  const policies = policiesMatching<ServicePolicy>(
    state.table('servicePolicy'),
    'serviceRoles',
    service,
  )
  for (const policy of policies) {
    const bit = bitOf(policy)
    for (const id of members(identities, policy.identityRoles, policy.semantic)) {
      grants.set(id, (grants.get(id) ?? 0) | bit)
    }
  }
  return grants
}

/** The policies that link the two, in id order. */
export function linkingPolicies(
  state: State,
  identity: EntityRecord,
  service: EntityRecord,
): ServicePolicy[] {
  return policiesMatching<ServicePolicy>(
    state.table('servicePolicy'),
    'identityRoles',
    identity,
  ).filter((policy) => matches(service, policy.serviceRoles, policy.semantic))
}

/** Role list as shown: `@id` by the name of what it names now; an id that names nothing is left out. */
export function rolesDisplay(
  state: State,
  to: string,
  roles: readonly string[],
): { readonly role: string; readonly name: string }[] {
  const shown: { role: string; name: string }[] = []
  for (const role of roles) {
    if (role.startsWith('#')) {
      shown.push({ role, name: role })
      continue
    }
    const name = state.get(to, role.slice(1))?.['name']
    if (typeof name === 'string') shown.push({ role, name: `@${name}` })
  }
  return shown
}
