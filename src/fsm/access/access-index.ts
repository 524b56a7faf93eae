import type { KindName } from '../../entities/kind-records.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import {
  BIND_BIT,
  DIAL_BIT,
  type PolicyGrants,
  matchesRoles,
  activePoliciesSelecting,
} from '../records/roles.ts'
import type { DerivedIndex, State } from '../records/state.ts'
import type { Table } from '../records/table.ts'
import {
  type AccessChanges,
  createAccessChangeRecorder,
  takeAccessChanges,
} from './access-changes.ts'
import {
  type AccessClassGrants,
  AccessClassCache,
  buildAccessClassGrants,
} from './access-class-cache.ts'
import { type AccessClass, AccessClasses, type AccessClassChanges } from './access-classes.ts'
import {
  ClientViewChanges,
  type AccessClassTransition,
  isPolicyEffectChanged,
} from './client-view-changes.ts'
import { AccessBeforeAndAfter } from './access-before-and-after.ts'

/** Maximum identities without an API session whose grants are cached until a record changes. */
const visitorsMax = 8
/**
 * If a policy change affects more services than this, the index drops the cached view of an access
 * class and does not update it, because rebuilding the view costs less.
 */
const followedServicesMax = 512

/** Effects of a log entry on the access of identities. */
export interface AccessEffects {
  readonly groups: readonly AccessClassTransition[]
  readonly moves: AccessClassChanges
  readonly sides: AccessBeforeAndAfter
  /** The access classes as they are before the entry. */
  readonly classes: AccessClasses
}

/**
 * The access that service policies grant to identities, updated with each change of the records.
 * The index is derived from the records alone and is not part of the state.
 */
export class AccessIndex implements DerivedIndex {
  /** Record writes that the index has not processed yet. */
  readonly #writes = createAccessChangeRecorder()
  readonly #state: State
  readonly #policies: Table<ServicePolicy>
  readonly #classes: AccessClasses
  readonly #views = new AccessClassCache()
  readonly #visitors = new Map<string, AccessClassGrants>()

  constructor(state: State) {
    this.#state = state
    this.#policies = state.table('servicePolicy')
    this.#classes = new AccessClasses(state)
  }

  note(kind: KindName, id: string, before: EntityRecord | undefined): void {
    this.#writes.note(kind, id, before)
  }

  rebuild(): void {
    this.#writes.clear()
    this.#views.clear()
    this.#visitors.clear()
    this.#classes.rebuild()
  }

  /**
   * Applies the changes recorded since the last call. `onJudged` receives their effects before the
   * classes are updated, and may return a function, which is called after the update. Neither
   * function may write a record that grants access. `onJudged` is not called if nothing has
   * changed, or if only services that no policy selects have changed.
   */
  settle(onJudged: (judgement: AccessEffects) => (() => void) | null = () => null): void {
    if (this.#writes.isEmpty) return
    const areOfServices = this.#writes.isOnlyOf('service')
    if (areOfServices && this.#policies.rows.size === 0) {
      this.#writes.clear()
      return
    }
    const changes = takeAccessChanges(this.#writes, this.#state.tables)
    if (areOfServices && this.#matchNoPolicy(changes)) return
    const sides = new AccessBeforeAndAfter(this.#state, changes)
    const moves = this.#classes.plan(changes)
    const groups = new ClientViewChanges(this.#state, this.#classes, sides, moves).judge()
    const onFollowed = onJudged({ groups, moves, sides, classes: this.#classes })
    const became: (readonly [AccessClass, AccessClass])[] = []
    this.#classes.commit(moves, changes, (from, to) => {
      this.#views.transfer(from, to)
      became.push([from, to])
    })
    this.#follow(sides, became)
    onFollowed?.()
  }

  /**
   * True when no policy selects any of the changed services, before or after the change. In that
   * case, no identity saw them or had a right on them.
   */
  #matchNoPolicy({ service: changed }: AccessChanges): boolean {
    const isMatched = (service: EntityRecord | undefined): boolean =>
      service !== undefined &&
      activePoliciesSelecting(this.#policies, 'serviceRoles', service).length > 0
    for (const { before, after } of changed.values()) {
      if (isMatched(before) || isMatched(after)) return false
    }
    return true
  }

  /** Drops the cached views of removed access classes and updates the views of the others. */
  #follow(
    sides: AccessBeforeAndAfter,
    became: readonly (readonly [AccessClass, AccessClass])[],
  ): void {
    this.#visitors.clear()
    if (this.#views.size === 0) return
    for (const of of this.#views.classes()) {
      if (this.#classes.withKey(of.key) !== of) this.#views.drop(of)
    }
    for (const [from, to] of became) {
      for (const id of from.policies.symmetricDifference(to.policies)) {
        this.#followPolicy(sides, id, [to])
      }
    }
    for (const [id, { before, after }] of sides.policies) {
      if (!isPolicyEffectChanged(before, after)) continue
      this.#followPolicy(sides, id, [...this.#classes.having(id)])
    }
    for (const id of sides.services.keys()) {
      const policies = [...sides.policiesOf(id, 'before'), ...sides.policiesOf(id, 'after')]
      const touched = new Set(policies.flatMap((policy) => [...this.#classes.having(policy.id)]))
      for (const of of touched) this.#followService(sides, of, id)
      if (sides.policies.size + became.length === 0) continue
      for (const of of this.#views.classes()) this.#followService(sides, of, id)
    }
  }

  #followPolicy(sides: AccessBeforeAndAfter, id: string, classes: readonly AccessClass[]): void {
    const viewed = classes.filter((of) => this.#views.peek(of) !== undefined)
    if (viewed.length === 0) return
    const services = new Set<string>()
    for (const side of ['before', 'after'] as const) {
      const policy = sides.policy(id, side)
      if (policy === undefined) continue
      for (const service of sides.unchangedServices(policy)) {
        services.add(service)
        if (services.size > followedServicesMax) {
          for (const of of viewed) this.#views.drop(of)
          return
        }
      }
    }
    for (const of of viewed) for (const service of services) this.#followService(sides, of, service)
  }

  #followService(sides: AccessBeforeAndAfter, of: AccessClass, serviceId: string): void {
    if (this.#views.peek(of) === undefined) return
    this.#views.change(of, serviceId, sides.bits(of.policies, serviceId, 'after'))
  }

  /**
   * Rights that policies grant to an identity, whether or not it is active. The result is valid
   * until the next change.
   */
  grantsOf(identity: EntityRecord): PolicyGrants {
    this.settle()
    const of = this.#classes.of(identity.id)
    if (of !== undefined)
      return this.#views.of(of, () => buildAccessClassGrants(this.#state, of.policies))
    let grants = this.#visitors.get(identity.id)
    if (grants === undefined) {
      const policies = activePoliciesSelecting(this.#policies, 'identityRoles', identity)
      grants = buildAccessClassGrants(
        this.#state,
        policies.map(({ id }) => id),
      )
      if (this.#visitors.size >= visitorsMax) this.#visitors.clear()
      this.#visitors.set(identity.id, grants)
    }
    return grants
  }

  /**
   * The BIND and DIAL bits of an identity on a service. Uses the cached view of the identity if
   * there is one, and builds no view.
   */
  bitsOf(identity: EntityRecord, service: EntityRecord): number {
    this.settle()
    const of = this.#classes.of(identity.id)
    const view = of === undefined ? this.#visitors.get(identity.id) : this.#views.peek(of)
    if (view === undefined) return accessBits(this.#state, identity, service)
    return (view.bind.has(service.id) ? BIND_BIT : 0) | (view.dial.has(service.id) ? DIAL_BIT : 0)
  }

  get classes(): AccessClasses {
    this.settle()
    return this.#classes
  }

  /** Current numbers of cached objects, for metrics. */
  get size(): { readonly classes: number; readonly views: number; readonly viewIds: number } {
    return { classes: this.#classes.count, views: this.#views.size, viewIds: this.#views.ids }
  }
}

/**
 * The BIND and DIAL bits that policies grant, computed from the current records without a cache.
 */
export function accessBits(state: State, identity: EntityRecord, service: EntityRecord): number {
  let bits = 0
  const table = state.table('servicePolicy')
  for (const policy of activePoliciesSelecting(table, 'serviceRoles', service)) {
    const bit = policy.type === 'Bind' ? BIND_BIT : DIAL_BIT
    if ((bits & bit) !== 0) continue
    if (matchesRoles(identity, policy.identityRoles, policy.semantic)) bits |= bit
  }
  return bits
}
