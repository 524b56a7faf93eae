import { hash } from 'node:crypto'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import { requirePresent } from '../../lib/assert.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import { addToSet, removeFromSet } from '../../lib/keyed-sets.ts'
import {
  recordRoleAttributes,
  collectMatchingIds,
  activePoliciesSelecting,
  type RoleList,
} from '../records/roles.ts'
import type { State } from '../records/state.ts'
import type { Table } from '../records/table.ts'
import { type AccessChanges, isSameStringList } from './access-changes.ts'

/**
 * The active identities (those with an API session) that the same service policies select. They may
 * therefore use the same services.
 */
export interface AccessClass {
  /**
   * Key of the access class. It is derived only from the policies, so it is the same on every
   * controller.
   */
  readonly key: string
  readonly policies: ReadonlySet<string>
  readonly members: Set<string>
}

/**
 * Members of an access class that all move to the same other class, because an entry changed their
 * policies.
 */
export interface AccessClassMove {
  readonly from: AccessClass
  readonly members: ReadonlySet<string>
  readonly key: string
  readonly policies: ReadonlySet<string>
}

/** The moves of identities between access classes that a log entry causes. */
export interface AccessClassChanges {
  /** Identities that became active, with the policies that select each of them. */
  readonly entered: ReadonlyMap<string, ReadonlySet<string>>
  /** Identities that stopped being active. */
  readonly left: ReadonlySet<string>
  readonly moves: readonly AccessClassMove[]
}

function keyOf(policies: ReadonlySet<string>): string {
  return hash('sha256', [...policies].sort().join('\n'), 'base64url')
}

function rolesOfIdentities(policy: ServicePolicy): RoleList {
  return { roles: policy.identityRoles, semantic: policy.semantic }
}

/**
 * Groups the identities that have an API session by the policies that select them. Other
 * identities, of which there may be many, belong to no class; their access is computed on request.
 */
export class AccessClasses {
  readonly #state: State
  readonly #sessions: Table
  readonly #classOf = new Map<string, AccessClass>()
  readonly #byKey = new Map<string, AccessClass>()
  readonly #byPolicy = new Map<string, Set<AccessClass>>()
  /** Ids of active identities, by role attribute. */
  readonly #byAttribute = new Map<string, Set<string>>()
  readonly #attributes = new Map<string, readonly string[]>()

  constructor(state: State) {
    this.#state = state
    this.#sessions = state.table('apiSession')
  }

  get activeCount(): number {
    return this.#classOf.size
  }

  get count(): number {
    return this.#byKey.size
  }

  all(): Iterable<AccessClass> {
    return this.#byKey.values()
  }

  of(identityId: string): AccessClass | undefined {
    return this.#classOf.get(identityId)
  }

  withKey(key: string): AccessClass | undefined {
    return this.#byKey.get(key)
  }

  having(policyId: string): Iterable<AccessClass> {
    return this.#byPolicy.get(policyId) ?? []
  }

  /** Rebuilds the access classes from the current records. */
  rebuild(): void {
    for (const map of [this.#classOf, this.#byKey, this.#byPolicy]) map.clear()
    this.#byAttribute.clear()
    this.#attributes.clear()
    for (const id of this.#sessions.indexes.elements('identityId')) {
      const identity = this.#state.get('identity', id)
      if (identity !== undefined) this.#enter(id, this.#policiesOf(identity))
    }
  }

  #policiesOf(identity: Identity): Set<string> {
    const table = this.#state.table('servicePolicy')
    return new Set(activePoliciesSelecting(table, 'identityRoles', identity).map(({ id }) => id))
  }

  #isActive(id: string): boolean {
    const sessions = this.#sessions.indexes.ids('identityId', id)
    return sessions.size > 0 && this.#state.get('identity', id) !== undefined
  }

  /** Plans how the changes move identities between access classes, without moving them. */
  plan(changes: AccessChanges): AccessClassChanges {
    const entered = new Map<string, ReadonlySet<string>>()
    const left = new Set<string>()
    for (const id of identitiesOfSessions(changes.apiSession.values())) {
      const isActive = this.#isActive(id)
      if (isActive === this.#classOf.has(id)) continue
      if (isActive) entered.set(id, this.#policiesOf(this.#identity(id)))
      else left.add(id)
    }
    /**
     * Identities whose role attributes changed, with the policies that select them after the
     * change.
     */
    const anew = new Map<string, ReadonlySet<string>>()
    for (const { id, after } of changes.identity.values()) {
      const known = this.#attributes.get(id)
      if (after === undefined || known === undefined || left.has(id)) continue
      if (isSameStringList(known, recordRoleAttributes(after))) continue
      anew.set(id, this.#policiesOf(after))
    }
    const flips = new Flips()
    for (const change of changes.servicePolicy.values()) this.#flip(change, flips)
    const isApart = (id: string): boolean => anew.has(id) || left.has(id)
    return { entered, left, moves: this.#movesOf(flips, anew, isApart) }
  }

  #identity(id: string): Identity {
    return requirePresent(this.#state.get('identity', id), `identity ${id} is there`)
  }

  /** Finds the identities that a changed policy starts or stops selecting. */
  #flip({ id, before, after }: RecordChange<'servicePolicy'>, flips: Flips): void {
    const old = before === undefined ? null : rolesOfIdentities(before)
    const next = after === undefined ? null : rolesOfIdentities(after)
    if (old !== null && next !== null && isSameRoleList(old, next)) return
    if (next === null || next.roles.includes('#all')) {
      const mustHave = next !== null
      const classes = mustHave ? this.#byKey.values() : this.having(id)
      for (const one of classes) if (one.policies.has(id) !== mustHave) flips.ofClass(one, id)
      return
    }
    const meant = this.#matching(next)
    for (const one of this.having(id)) {
      for (const member of one.members) if (!meant.has(member)) flips.ofMember(one, member, id)
    }
    for (const member of meant) {
      const one = this.#classOf.get(member)
      if (one !== undefined && !one.policies.has(id)) flips.ofMember(one, member, id)
    }
  }

  /** The active identities that a role list without `#all` selects. */
  #matching({ roles, semantic }: RoleList): Set<string> {
    const found = new Set<string>()
    const postings: ReadonlySet<string>[] = []
    for (const role of roles) {
      const name = role.slice(1)
      if (role.startsWith('#')) postings.push(this.#byAttribute.get(name) ?? new Set())
      else if (this.#classOf.has(name)) found.add(name)
    }
    return collectMatchingIds(postings, semantic, found)
  }

  #movesOf(
    flips: Flips,
    anew: ReadonlyMap<string, ReadonlySet<string>>,
    isApart: (id: string) => boolean,
  ): AccessClassMove[] {
    const moves: AccessClassMove[] = []
    const add = (from: AccessClass, members: Iterable<string>, policies: Set<string>): void => {
      const set = new Set([...members].filter((id) => !isApart(id)))
      if (set.size > 0) moves.push({ from, members: set, key: keyOf(policies), policies })
    }
    for (const { from, shared, ofMembers } of flips.perClass()) {
      const groups = new Map<string, { readonly flipped: Set<string>; readonly ids: string[] }>()
      for (const [member, own] of ofMembers) {
        const flipped = own.symmetricDifference(shared)
        const text = [...flipped].sort().join('\n')
        const group = groups.get(text) ?? { flipped, ids: [] }
        group.ids.push(member)
        groups.set(text, group)
      }
      for (const { flipped, ids } of groups.values()) {
        if (flipped.size > 0) add(from, ids, from.policies.symmetricDifference(flipped))
      }
      if (shared.size === 0) continue
      const others = [...from.members].filter((id) => !ofMembers.has(id))
      add(from, others, from.policies.symmetricDifference(shared))
    }
    for (const [id, policies] of anew) {
      const from = requirePresent(this.#classOf.get(id), 'an active identity has a class')
      const key = keyOf(policies)
      if (key !== from.key) moves.push({ from, members: new Set([id]), key, policies })
    }
    return moves
  }

  /**
   * Applies a plan. `onBecame` is called for an access class whose members all move to a class that
   * did not exist before, once they belong to that class; if several access classes move to the
   * same new class, only for the first one.
   */
  commit(
    { entered, left, moves }: AccessClassChanges,
    changes: AccessChanges,
    onBecame: (from: AccessClass, to: AccessClass) => void,
  ): void {
    for (const { id, after } of changes.identity.values()) {
      if (after !== undefined && this.#classOf.has(id))
        this.#indexAttributes(id, recordRoleAttributes(after))
    }
    for (const id of left) this.#leave(id)
    const whole = moves.filter(({ from, members }) => from.members.size === members.size)
    const isWhole = new Set(whole)
    for (const { from, members } of moves) for (const id of members) this.#detach(from, id)
    for (const move of moves) {
      const known = this.#byKey.get(move.key)
      const to = known ?? this.#newClass(move.key, move.policies)
      for (const id of move.members) this.#attach(to, id)
      if (known === undefined && isWhole.has(move)) onBecame(move.from, to)
    }
    for (const [id, policies] of entered) this.#enter(id, policies)
  }

  #enter(id: string, policies: ReadonlySet<string>): void {
    const key = keyOf(policies)
    this.#attach(this.#byKey.get(key) ?? this.#newClass(key, policies), id)
    this.#indexAttributes(id, recordRoleAttributes(this.#identity(id)))
  }

  #leave(id: string): void {
    const from = this.#classOf.get(id)
    if (from !== undefined) this.#detach(from, id)
    this.#indexAttributes(id, [])
    this.#attributes.delete(id)
  }

  #newClass(key: string, policies: ReadonlySet<string>): AccessClass {
    const made = { key, policies, members: new Set<string>() }
    this.#byKey.set(key, made)
    for (const policy of policies) addToSet(this.#byPolicy, policy, made)
    return made
  }

  #attach(to: AccessClass, id: string): void {
    to.members.add(id)
    this.#classOf.set(id, to)
  }

  #detach(from: AccessClass, id: string): void {
    from.members.delete(id)
    this.#classOf.delete(id)
    if (from.members.size > 0) return
    this.#byKey.delete(from.key)
    for (const policy of from.policies) removeFromSet(this.#byPolicy, policy, from)
  }

  #indexAttributes(id: string, attributes: readonly string[]): void {
    for (const name of this.#attributes.get(id) ?? []) removeFromSet(this.#byAttribute, name, id)
    for (const name of attributes) addToSet(this.#byAttribute, name, id)
    this.#attributes.set(id, attributes)
  }
}

/** Policies that start or stop selecting members of an access class because of a log entry. */
class Flips {
  readonly #classes = new Map<
    AccessClass,
    { readonly shared: Set<string>; readonly ofMembers: Map<string, Set<string>> }
  >()

  #entry(from: AccessClass) {
    let entry = this.#classes.get(from)
    if (entry === undefined) {
      entry = { shared: new Set(), ofMembers: new Map() }
      this.#classes.set(from, entry)
    }
    return entry
  }

  /** Records a policy for all members of an access class. */
  ofClass(from: AccessClass, policy: string): void {
    this.#entry(from).shared.add(policy)
  }

  ofMember(from: AccessClass, member: string, policy: string): void {
    addToSet(this.#entry(from).ofMembers, member, policy)
  }

  *perClass() {
    for (const [from, entry] of this.#classes) yield { from, ...entry }
  }
}

function* identitiesOfSessions(changes: Iterable<RecordChange<'apiSession'>>): Iterable<string> {
  for (const { before, after } of changes) {
    // The change is skipped: the session existed before, so only fields such as its last activity
    // changed.
    if (before !== undefined && after !== undefined) continue
    const session = before ?? after
    if (session !== undefined) yield session.identityId
  }
}

export function isSameRoleList(a: RoleList, b: RoleList): boolean {
  return a.semantic === b.semantic && isSameStringList(a.roles, b.roles)
}
