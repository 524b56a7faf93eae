import type { Entity } from '../../entities/define-entity.ts'
import { findEntity } from '../../entities/registry.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { KindName } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { sortTexts } from '../../lib/text/text-order.ts'
import { type IdScope, emptyIds, SetScope, SortedIds } from './sorted-ids.ts'
import type { State } from './state.ts'
import type { Records, Table } from './table.ts'

const ALL = '#all'

/** Bits for the rights that policies grant, in the order in which responses list them. */
export const BIND_BIT = 1
export const DIAL_BIT = 2

/** The role attributes of a record; [] if its kind has no role attributes. */
export function recordRoleAttributes(record: EntityRecord): readonly string[] {
  const attributes = record['roleAttributes']
  return Array.isArray(attributes) ? (attributes as readonly string[]) : []
}

function hasAttributes(record: EntityRecord, roles: readonly string[], semantic: string): boolean {
  const own = recordRoleAttributes(record)
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
 * Whether a role list selects the record. A list that contains the record's `@id` or `#all` selects
 * it with either semantic. With AllOf, the list also selects a record that has all of the list's
 * attributes (at least one); with AnyOf, a record that has any of them. The record must be in the
 * scope of the kind to which the list applies.
 */
export function matchesRoles(
  record: EntityRecord,
  roles: readonly string[],
  semantic: string,
): boolean {
  if (roles.includes(ALL) || roles.includes(`@${record.id}`)) return true
  return hasAttributes(record, roles, semantic)
}

/** Roles in the list that match the record; none if the list does not select the record. */
export function matchingRoles(
  record: EntityRecord,
  roles: readonly string[],
  semantic: string,
): readonly string[] {
  if (!matchesRoles(record, roles, semantic)) return []
  const own = new Set([
    ALL,
    `@${record.id}`,
    ...recordRoleAttributes(record).map((name) => `#${name}`),
  ])
  return roles.filter((role) => own.has(role))
}

/**
 * Ids of the records that have any of the attributes (AnyOf), or all of them (AllOf), found with
 * the index. For AllOf, the search starts from the rarest attribute.
 */
export function idsByAttributes(
  table: Records,
  attributes: readonly string[],
  semantic: string,
): Set<string> {
  const postings = attributes.map((name) => table.indexes.ids('roleAttributes', name))
  return collectMatchingIds(postings, semantic)
}

/** Operations that `Set` and `SortedIds` have in common. */
interface IdSet extends Iterable<string> {
  readonly size: number
  has(id: string): boolean
}

/**
 * Adds to `found` the ids that are in any of the sets (AnyOf), or the ids that are in all of them
 * (AllOf).
 */
export function collectMatchingIds(
  postings: readonly IdSet[],
  semantic: string,
  found = new Set<string>(),
): Set<string> {
  if (semantic === 'AnyOf') {
    for (const ids of postings) for (const id of ids) found.add(id)
    return found
  }
  const [rarest, ...others] = [...postings].sort((a, b) => a.size - b.size)
  for (const id of rarest ?? []) if (others.every((ids) => ids.has(id))) found.add(id)
  return found
}

/** A role list with the semantic (AllOf or AnyOf) of its policy. */
export interface RoleList {
  readonly roles: readonly string[]
  readonly semantic: string
}

/**
 * The ids and attributes of many role lists, without duplicates, so that the records with an
 * attribute are read only once, and not for every list that contains the attribute.
 */
interface Named {
  readonly ids: Set<string>
  readonly any: Set<string>
  /**
   * Sorted lists of attributes that a record must all have; the key is the joined text of the list.
   */
  readonly all: Map<string, readonly string[]>
}

function nameAll(lists: readonly RoleList[]): Named {
  const named: Named = { ids: new Set(), any: new Set(), all: new Map() }
  for (const { roles, semantic } of lists) {
    const attributes: string[] = []
    for (const role of roles) {
      if (role.startsWith('@')) named.ids.add(role.slice(1))
      else attributes.push(role.slice(1))
    }
    if (semantic === 'AnyOf' || attributes.length === 1) {
      for (const attribute of attributes) named.any.add(attribute)
    } else named.all.set(JSON.stringify(attributes), attributes)
  }
  return named
}

/**
 * The records in a table that are outside the scope of this kind, which shares the table with other
 * kinds.
 */
function outside(table: Table, { scope }: Entity): IdScope {
  return scope === null ? emptyIds : table.indexes.ids(scope.field, String(!scope.value))
}

/**
 * The ids of the kind's records in a table that several kinds share; null: all records of the table
 * are in scope.
 */
export function idsWithinScope(table: Table, kind: Entity): IdScope | null {
  const { scope } = kind
  if (scope === null || outside(table, kind).size === 0) return null
  return table.indexes.ids(scope.field, String(scope.value))
}

/** The records of a kind that any of the role lists selects. */
export function idsSelectedByRoles(
  state: State,
  kind: KindName,
  lists: readonly RoleList[],
): IdScope {
  const found = unorderedIdsSelectedByRoles(state, kind, lists)
  return found instanceof SortedIds ? found : new SetScope(found)
}

/** The records of a kind that any of the role lists selects, in any order. */
export function unorderedIdsSelectedByRoles(
  state: State,
  kind: KindName,
  lists: readonly RoleList[],
): ReadonlySet<string> | SortedIds {
  const table = state.table(kind)
  const hidden = outside(table, findEntity(kind))
  const meansAll = lists.some(({ roles }) => roles.includes(ALL))
  if (meansAll && hidden.size === 0) return table.ids
  const found = new Set<string>(meansAll ? table.ids : [])
  if (!meansAll) {
    const named = nameAll(lists)
    for (const id of named.ids) if (table.rows.has(id)) found.add(id)
    for (const id of idsByAttributes(table, [...named.any], 'AnyOf')) found.add(id)
    for (const attributes of named.all.values()) {
      for (const id of idsByAttributes(table, attributes, 'AllOf')) found.add(id)
    }
  }
  for (const id of hidden) found.delete(id)
  return found
}

/** A record with role lists, which all have the same semantic. */
export type Policy = EntityRecord & { readonly semantic: string }

/** Whether a policy is effective: false for an expired service policy. */
export function isEffectivePolicy(policy: EntityRecord): boolean {
  // @guard access-that-ended--policy
  return policy['isEnded'] !== true
}

/** The effective policies whose role list `field` selects the record, in id order. */
export function activePoliciesSelecting<P extends Policy>(
  policies: Table<P>,
  field: Extract<keyof P, string>,
  record: EntityRecord,
): P[] {
  return allPoliciesSelecting(policies, field, record).filter(isEffectivePolicy)
}

/** All policies whose role list `field` selects the record, including expired ones, in id order. */
export function allPoliciesSelecting<P extends Policy>(
  policies: Table<P>,
  field: Extract<keyof P, string>,
  record: EntityRecord,
): P[] {
  if (policies.rows.size === 0) return []
  const candidates: SortedIds[] = []
  const take = (role: string): void => {
    const ids = policies.indexes.ids(field, role)
    if (ids.size > 0) candidates.push(ids)
  }
  take(ALL)
  take(`@${record.id}`)
  for (const name of recordRoleAttributes(record)) take(`#${name}`)
  const found: P[] = []
  for (const id of inIdOrder(candidates)) {
    const policy = policies.get(id)
    const list = policy?.[field] as readonly string[] | undefined
    if (policy === undefined || list === undefined) continue
    if (matchesRoles(record, list, policy.semantic)) found.push(policy)
  }
  return found
}

/** Ids that are in any of the lists, sorted and without duplicates. */
function inIdOrder(lists: readonly Iterable<string>[]): Iterable<string> {
  const [first = []] = lists
  if (lists.length < 2) return first
  const ids = new Set<string>()
  for (const list of lists) for (const id of list) ids.add(id)
  return sortTexts([...ids])
}

/**
 * The services that policies grant to an identity, or the identities to which policies grant a
 * service; by type of policy.
 */
export interface PolicyGrants {
  readonly bind: IdScope
  readonly dial: IdScope
  /** Records that Dial or Bind policies grant. */
  readonly any: IdScope
}

/**
 * The union of two scopes. If one scope is empty, or contains all records, the result is the larger
 * scope itself.
 */
function union(a: IdScope, b: IdScope, sizeOfAll: number): IdScope {
  const [small, large] = a.size < b.size ? [a, b] : [b, a]
  if (small.size === 0 || large.size === sizeOfAll) return large
  return new SetScope(new Set([...large, ...small]))
}

/** The identities that may use a service, by type of policy. */
export function identitiesGrantedService(state: State, service: EntityRecord): PolicyGrants {
  const lists: Record<ServicePolicy['type'], RoleList[]> = { Bind: [], Dial: [] }
  const table = state.table('servicePolicy')
  for (const policy of activePoliciesSelecting(table, 'serviceRoles', service)) {
    lists[policy.type].push({ roles: policy.identityRoles, semantic: policy.semantic })
  }
  const bind = idsSelectedByRoles(state, 'identity', lists.Bind)
  const dial = idsSelectedByRoles(state, 'identity', lists.Dial)
  return { bind, dial, any: union(bind, dial, state.table('identity').rows.size) }
}

/** The effective service policies that link the two records, sorted by id. */
export function linkingPolicies(
  state: State,
  identity: EntityRecord,
  service: EntityRecord,
): ServicePolicy[] {
  return activePoliciesSelecting(state.table('servicePolicy'), 'identityRoles', identity).filter(
    (policy) => matchesRoles(service, policy.serviceRoles, policy.semantic),
  )
}

/**
 * Role list for display: each `@id` is replaced with the current name of its record; ids without a
 * record are omitted.
 */
export function rolesForDisplay(
  state: State,
  to: KindName,
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
