import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import {
  BIND_BIT,
  DIAL_BIT,
  isEffectivePolicy,
  type PolicyGrants,
  unorderedIdsSelectedByRoles,
  type RoleList,
} from '../records/roles.ts'
import { SortedIds } from '../records/sorted-ids.ts'
import type { State } from '../records/state.ts'
import type { AccessClass } from './access-classes.ts'

export const classViewLimits = {
  /**
   * Maximum cached views (the services that one access class may use); above it, the least recently
   * used view is removed.
   */
  classViewsMax: 1_024,
  /** Maximum ids in all cached views; above it, the least recently used views are removed. */
  classViewIdsMax: 2_000_000,
} as const

/** The services that an access class may use, sorted by id. */
export class AccessClassGrants implements PolicyGrants {
  readonly bind: SortedIds
  readonly dial: SortedIds
  readonly any: SortedIds

  constructor(bind: ReadonlySet<string>, dial: ReadonlySet<string>) {
    this.bind = SortedIds.of([...bind].sort())
    this.dial = SortedIds.of([...dial].sort())
    this.any = SortedIds.of([...bind.union(dial)].sort())
  }

  get weight(): number {
    return this.bind.size + this.dial.size + this.any.size
  }

  /** Sets the rights of the access class on a service. */
  set(serviceId: string, bits: number): void {
    change(this.bind, serviceId, (bits & BIND_BIT) !== 0)
    change(this.dial, serviceId, (bits & DIAL_BIT) !== 0)
    change(this.any, serviceId, bits !== 0)
  }
}

function change(ids: SortedIds, id: string, isIn: boolean): void {
  if (isIn) ids.add(id)
  else ids.delete(id)
}

/** Builds the view of an access class (the services that it may use) from the current records. */
export function buildAccessClassGrants(
  state: State,
  policies: Iterable<string>,
): AccessClassGrants {
  const lists: Record<ServicePolicy['type'], RoleList[]> = { Bind: [], Dial: [] }
  for (const id of policies) {
    const policy = state.get('servicePolicy', id)
    if (policy === undefined || !isEffectivePolicy(policy)) continue
    lists[policy.type].push({ roles: policy.serviceRoles, semantic: policy.semantic })
  }
  const bind = new Set(unorderedIdsSelectedByRoles(state, 'service', lists.Bind))
  return new AccessClassGrants(
    bind,
    new Set(unorderedIdsSelectedByRoles(state, 'service', lists.Dial)),
  )
}

/**
 * Caches the grants of access classes: the services that each class may dial and host. Writes
 * change the cached grants. Since grants can be derived from the records, the cache may drop any of
 * them; it drops the least recently used ones first.
 */
export class AccessClassCache {
  readonly #views = new Map<AccessClass, AccessClassGrants>()
  #ids = 0

  /** Returns the grants without counting the call as a use. */
  peek(of: AccessClass): AccessClassGrants | undefined {
    return this.#views.get(of)
  }

  get size(): number {
    return this.#views.size
  }

  /** Number of ids in all cached views. */
  get ids(): number {
    return this.#ids
  }

  /** The cached view of an access class; if there is none, calls `make` and caches its result. */
  of(of: AccessClass, make: () => AccessClassGrants): AccessClassGrants {
    const view = this.#views.get(of) ?? make()
    this.drop(of)
    this.#keep(of, view)
    for (const [old] of this.#views) {
      const { classViewsMax, classViewIdsMax } = classViewLimits
      if (this.#views.size <= classViewsMax && this.#ids <= classViewIdsMax) break
      if (old !== of) this.drop(old)
    }
    return view
  }

  #keep(of: AccessClass, view: AccessClassGrants): void {
    this.#views.set(of, view)
    this.#ids += view.weight
  }

  drop(of: AccessClass): void {
    const view = this.#views.get(of)
    if (view === undefined) return
    this.#views.delete(of)
    this.#ids -= view.weight
  }

  /**
   * Assigns the view of the class `from` to the class `to`, to which all members of `from` have
   * moved.
   */
  transfer(from: AccessClass, to: AccessClass): void {
    const view = this.#views.get(from)
    if (view === undefined) return
    this.drop(from)
    this.#keep(to, view)
  }

  /** Changes the rights of an access class on one service. */
  change(of: AccessClass, serviceId: string, bits: number): void {
    const view = this.#views.get(of)
    if (view === undefined) return
    this.#ids -= view.weight
    view.set(serviceId, bits)
    this.#ids += view.weight
  }

  clear(): void {
    this.#views.clear()
    this.#ids = 0
  }

  *classes(): Iterable<AccessClass> {
    yield* Array.from(this.#views.keys())
  }
}
