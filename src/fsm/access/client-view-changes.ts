import type { Service } from '../../entities/kinds/service.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import { isSameJson } from '../../lib/text/canonical-json.ts'
import type { State } from '../records/state.ts'
import { isSameStringList } from './access-changes.ts'
import {
  type AccessClass,
  type AccessClasses,
  type AccessClassMove,
  type AccessClassChanges,
  isSameRoleList,
} from './access-classes.ts'
import {
  policyAccessBit,
  type BeforeOrAfter,
  type AccessBeforeAndAfter,
} from './access-before-and-after.ts'

/**
 * Members of an access class that all keep their policies, or all move to the same other class. (An
 * access class consists of the active identities that the same service policies select.)
 */
export interface AccessClassTransition {
  readonly from: AccessClass
  readonly members: ReadonlySet<string>
  /** Move of the members to another access class; null if the members keep their policies. */
  readonly move: AccessClassMove | null
  /**
   * Members whose client view (the services that a client sees) changed: all of them, or only the
   * members in the set.
   */
  moved: 'all' | Set<string>
  /**
   * True if a policy stopped selecting the members, or if the entry changed the type, services or
   * posture checks of a policy that selects them.
   */
  hasLost: boolean
}

function policiesAfter({ from, move }: AccessClassTransition): ReadonlySet<string> {
  return move === null ? from.policies : move.policies
}

/**
 * Finds the active identities whose client view changes with a log entry. The view changes if one
 * of its services appears, disappears or is written; if the identity's rights on one of them, or
 * the config of one of them that the identity sees, change; or (if posture checks exist) if the
 * policies that link the identity to one of them, or the posture checks of these policies, change.
 * The search starts at the changed records, before the classes are updated, and examines no other
 * views. A result that holds for a group is recorded once for the group.
 */
export class ClientViewChanges {
  readonly #state: State
  readonly #classes: AccessClasses
  readonly #sides: AccessBeforeAndAfter
  readonly #moves: AccessClassChanges
  readonly #movesFrom: ReadonlyMap<AccessClass, readonly AccessClassMove[]>
  /** Groups of members of each access class that has been examined. */
  readonly #groups = new Map<AccessClass, readonly AccessClassTransition[]>()

  constructor(
    state: State,
    classes: AccessClasses,
    sides: AccessBeforeAndAfter,
    moves: AccessClassChanges,
  ) {
    this.#state = state
    this.#classes = classes
    this.#sides = sides
    this.#moves = moves
    this.#movesFrom = Map.groupBy(moves.moves, ({ from }) => from)
  }

  /**
   * All groups that move to another access class, and the groups that stay in their class and that
   * the changes may affect.
   */
  judge(): AccessClassTransition[] {
    for (const { from } of this.#moves.moves) this.#groupsOf(from)
    this.#judgeServices()
    this.#judgeChecks()
    this.#judgePolicies()
    this.#judgeConfigs()
    this.#judgeOverrides()
    return [...this.#groups.values()].flat()
  }

  #groupsOf(from: AccessClass): readonly AccessClassTransition[] {
    const known = this.#groups.get(from)
    if (known !== undefined) return known
    const moves = this.#movesFrom.get(from) ?? []
    const groups: AccessClassTransition[] = moves.map((move) => ({
      from,
      members: move.members,
      move,
      moved: new Set(),
      hasLost: false,
    }))
    const gone = new Set<string>(moves.flatMap(({ members }) => [...members]))
    for (const id of this.#moves.left) if (from.members.has(id)) gone.add(id)
    const staying = gone.size === 0 ? from.members : from.members.difference(gone)
    if (staying.size > 0) {
      groups.push({ from, members: staying, move: null, moved: new Set(), hasLost: false })
    }
    this.#groups.set(from, groups)
    return groups
  }

  /**
   * Marks as changed the views of all identities that one of the policies selects; `side`: whether
   * the policies select them before or after the changes.
   */
  #moveAll(policies: Iterable<ServicePolicy>, side: BeforeOrAfter): void {
    for (const { id } of policies) {
      for (const from of this.#classes.having(id)) {
        for (const group of this.#groupsOf(from)) {
          if (side === 'before' || policiesAfter(group).has(id)) group.moved = 'all'
        }
      }
      if (side === 'before') continue
      for (const { from, policies: next } of this.#moves.moves) {
        if (!next.has(id)) continue
        for (const group of this.#groupsOf(from)) {
          if (policiesAfter(group).has(id)) group.moved = 'all'
        }
      }
    }
  }

  /**
   * Marks the views that a written service changes: those of every identity that sees it before or
   * after the write.
   */
  #judgeServices(): void {
    for (const id of this.#sides.services.keys()) {
      for (const side of ['before', 'after'] as const) {
        this.#moveAll(this.#sides.policiesOf(id, side), side)
      }
    }
  }

  #judgeChecks(): void {
    const sides = this.#sides
    const { before: had, after: has } = sides.hasChecks
    if (had !== has) {
      // The first posture check was added, or the last one removed, so services start or stop
      // showing their policies.
      for (const from of this.#classes.all()) this.#moveIfAnything(from)
      return
    }
    if (!has) return
    for (const { before, after } of sides.checks.values()) {
      for (const [side, check] of [
        ['before', before],
        ['after', after],
      ] as const) {
        const policies = sides.policiesMeaning('postureCheckRoles', check, side)
        this.#moveAll(
          policies.filter((policy) => sides.meansAnyService(policy, side)),
          side,
        )
      }
    }
  }

  #moveIfAnything(from: AccessClass): void {
    const sees = (policies: ReadonlySet<string>, side: BeforeOrAfter): boolean => {
      for (const id of policies) {
        const policy = this.#sides.policy(id, side)
        if (policy !== undefined && this.#sides.meansAnyService(policy, side)) return true
      }
      return false
    }
    const saw = sees(from.policies, 'before')
    for (const group of this.#groupsOf(from)) {
      if (saw || sees(policiesAfter(group), 'after')) group.moved = 'all'
    }
  }

  /** Detects added, removed and changed policies for services that the entry did not change. */
  #judgePolicies(): void {
    for (const [id, { before, after }] of this.#sides.policies) {
      if (!isPolicyEffectChanged(before, after)) continue
      for (const from of this.#classes.having(id)) this.#groupsOf(from)
    }
    const namesPolicies = this.#sides.hasChecks.after
    for (const groups of this.#groups.values()) {
      for (const group of groups) {
        const [lost, gained] = this.#differences(group)
        group.hasLost = lost.length > 0
        if (group.moved === 'all' || lost.length + gained.length === 0) continue
        const hasMoved = namesPolicies
          ? this.#linksDiffer(lost, gained)
          : this.#bitsDiffer(group, lost, gained)
        if (hasMoved) group.moved = 'all'
      }
    }
  }

  /**
   * The policies that the group lost, as they were before the changes, and the policies that the
   * group gained, as they are after the changes.
   */
  #differences(
    group: AccessClassTransition,
  ): readonly [lost: ServicePolicy[], gained: ServicePolicy[]] {
    const after = policiesAfter(group)
    const lost: ServicePolicy[] = []
    const gained: ServicePolicy[] = []
    const note = (id: string, had: boolean, has: boolean): void => {
      const old = had ? this.#sides.policy(id, 'before') : undefined
      const next = has ? this.#sides.policy(id, 'after') : undefined
      if (!isPolicyEffectChanged(old, next)) return
      if (old !== undefined) lost.push(old)
      if (next !== undefined) gained.push(next)
    }
    if (group.move !== null) {
      for (const id of group.from.policies) if (!after.has(id)) note(id, true, false)
      for (const id of after) if (!group.from.policies.has(id)) note(id, false, true)
    }
    for (const id of this.#sides.policies.keys()) {
      if (group.from.policies.has(id) && after.has(id)) note(id, true, true)
    }
    return [lost, gained]
  }

  /**
   * Whether the group is linked to any unchanged service by other policies than before, or by a
   * policy whose type or checks differ.
   */
  #linksDiffer(lost: readonly ServicePolicy[], gained: readonly ServicePolicy[]): boolean {
    const sides = this.#sides
    const next = new Map(gained.map((policy) => [policy.id, policy]))
    for (const old of lost) {
      const now = next.get(old.id)
      next.delete(old.id)
      if (now === undefined || old.type !== now.type || this.#checksDiffer(old, now)) {
        if (sides.meansUnchangedService(old)) return true
        if (now !== undefined && sides.meansUnchangedService(now)) return true
        continue
      }
      const services = new Set(sides.unchangedServices(old))
      let shared = 0
      for (const id of sides.unchangedServices(now)) {
        if (!services.has(id)) return true
        shared += 1
      }
      if (shared !== services.size) return true
    }
    for (const policy of next.values()) if (sides.meansUnchangedService(policy)) return true
    return false
  }

  /**
   * Whether a policy requires other posture checks than before. (For a check that was itself
   * changed, the views of all affected members are marked elsewhere.)
   */
  #checksDiffer(old: ServicePolicy, now: ServicePolicy): boolean {
    return !isSameStringList(this.#sides.unchangedChecks(old), this.#sides.unchangedChecks(now))
  }

  #bitsDiffer(
    group: AccessClassTransition,
    lost: readonly ServicePolicy[],
    gained: readonly ServicePolicy[],
  ): boolean {
    const { from } = group
    return (
      this.#addsTo(gained, from.policies, 'before') ||
      this.#addsTo(lost, policiesAfter(group), 'after')
    )
  }

  /** Whether one of the added policies grants a right that none of the other policies grants. */
  #addsTo(
    added: readonly ServicePolicy[],
    others: ReadonlySet<string>,
    side: BeforeOrAfter,
  ): boolean {
    for (const policy of added) {
      const bit = policyAccessBit(policy)
      if (this.#isCovered(policy, others, side)) continue
      for (const id of this.#sides.unchangedServices(policy)) {
        if ((this.#sides.bits(others, id, side) & bit) === 0) return true
      }
    }
    return false
  }

  /**
   * Whether another policy of the same type selects all services, or the same services, so that the
   * services need not be compared one by one.
   */
  #isCovered(policy: ServicePolicy, others: ReadonlySet<string>, side: BeforeOrAfter): boolean {
    for (const id of others) {
      const other = this.#sides.policy(id, side)
      if (other?.type !== policy.type) continue
      if (other.serviceRoles.includes('#all') || sameServices(other, policy)) return true
    }
    return false
  }

  /**
   * Detects configs with changed data and config types with a changed name, for services that the
   * entry did not change.
   */
  #judgeConfigs(): void {
    const sides = this.#sides
    const touched = new Set<string>()
    for (const [id, { before: old, after: now }] of sides.configs) {
      const isSame = old !== undefined && now !== undefined && isSameJson(old.data, now.data)
      if (!isSame) touched.add(id)
    }
    for (const [id, { before, after }] of sides.configTypes) {
      if (before?.name === after?.name) continue
      for (const config of this.#state.table('config').indexes.ids('configTypeId', id)) {
        touched.add(config)
      }
    }
    if (touched.size === 0) return
    const { indexes: services } = this.#state.table('service')
    const { indexes: overrides } = this.#state.table('serviceConfig')
    for (const configId of touched) {
      for (const id of services.ids('configs', configId)) this.#judgeServiceConfig(id)
      for (const id of overrides.ids('configId', configId)) {
        const override = this.#state.get('serviceConfig', id)
        if (override !== undefined) this.#judgePair(override.identityId, override.serviceId)
      }
    }
  }

  /**
   * A changed config of a service changes the view of every identity that sees the service.
   * Identities that override a config of the service are checked one by one.
   */
  #judgeServiceConfig(serviceId: string): void {
    const service = this.#sides.service(serviceId, 'after')
    if (service === undefined || this.#sides.services.has(serviceId)) return
    const apart = this.#identitiesWithOwnConfig(serviceId)
    for (const { id } of this.#sides.policiesOf(serviceId, 'before')) {
      for (const from of this.#classes.having(id)) {
        for (const group of this.#groupsOf(from)) {
          if (group.moved === 'all') continue
          const exempt = apart.intersection(group.members)
          if (exempt.size === 0) {
            group.moved = 'all'
            continue
          }
          for (const member of group.members) {
            if (!exempt.has(member) || this.#showsOther(member, service)) group.moved.add(member)
          }
        }
      }
    }
  }

  #identitiesWithOwnConfig(serviceId: string): Set<string> {
    const found = new Set<string>()
    for (const id of this.#state.table('serviceConfig').indexes.ids('serviceId', serviceId)) {
      const override = this.#state.get('serviceConfig', id)
      if (override !== undefined) found.add(override.identityId)
    }
    for (const { before } of this.#sides.overrides.values()) {
      if (before?.serviceId === serviceId) found.add(before.identityId)
    }
    return found
  }

  #judgeOverrides(): void {
    for (const { before, after } of this.#sides.overrides.values()) {
      const override = after ?? before
      if (override !== undefined) this.#judgePair(override.identityId, override.serviceId)
    }
  }

  #judgePair(identityId: string, serviceId: string): void {
    const from = this.#classes.of(identityId)
    const service = this.#sides.service(serviceId, 'after')
    if (from === undefined || service === undefined) return
    if (this.#sides.services.has(serviceId)) return
    if (this.#sides.bits(from.policies, serviceId, 'before') === 0) return
    const group = this.#groupsOf(from).find(({ members }) => members.has(identityId))
    if (group === undefined || group.moved === 'all' || group.moved.has(identityId)) return
    if (this.#showsOther(identityId, service)) group.moved.add(identityId)
  }

  #showsOther(identityId: string, service: Service): boolean {
    const [old, now] = (['before', 'after'] as const).map((side) =>
      this.#sides.configsShown(identityId, service, side),
    )
    return old !== now
  }
}

function sameServices(a: ServicePolicy, b: ServicePolicy): boolean {
  return isSameRoleList(
    { roles: a.serviceRoles, semantic: a.semantic },
    { roles: b.serviceRoles, semantic: b.semantic },
  )
}

/**
 * Whether two versions of a policy differ in the rights that they grant, in the services or in the
 * posture checks. Their identity roles are not compared.
 */
export function isPolicyEffectChanged(
  a: ServicePolicy | undefined,
  b: ServicePolicy | undefined,
): boolean {
  if (a === undefined || b === undefined) return a !== b
  if (a === b) return false
  return (
    a.type !== b.type ||
    !sameServices(a, b) ||
    !isSameStringList(a.postureCheckRoles, b.postureCheckRoles)
  )
}
