import type { EntityRecord } from '../lib/entity-record.ts'
import { serviceGrants } from './roles.ts'
import type { Grants } from './roles.ts'
import type { State } from './state.ts'

interface Cached {
  readonly grants: Grants
  readonly weight: number
  readonly services: number
  readonly policies: number
  readonly revision: number
}

const identitiesMax = 1024
/** Ids in all cached scopes together. */
const weightMax = 2_000_000

/**
 * What each identity may use, kept until a policy, a service's membership or attributes, or the identity changes. It is not
 * part of the state: it can be dropped at any time. The least recently used go first.
 */
export class GrantCache {
  readonly #state: State
  readonly #cached = new Map<string, Cached>()
  #weight = 0

  constructor(state: State) {
    this.#state = state
  }

  of(identity: EntityRecord): Grants {
    const services = this.#state.table('service').matchVersion
    const policies = this.#state.table('servicePolicy').version
    const { id, revision } = identity
    const known = this.#cached.get(id)
    if (known !== undefined) this.#drop(id, known)
    if (
      known?.services === services &&
      known.policies === policies &&
      known.revision === revision
    ) {
      return this.#keep(id, known)
    }
    const grants = serviceGrants(this.#state, identity)
    const weight = grants.bind.size + grants.dial.size + grants.any.size
    return this.#keep(id, { grants, weight, services, policies, revision })
  }

  #drop(id: string, cached: Cached): void {
    this.#cached.delete(id)
    this.#weight -= cached.weight
  }

  #keep(id: string, cached: Cached): Grants {
    this.#cached.set(id, cached)
    this.#weight += cached.weight
    for (const [oldId, old] of this.#cached) {
      if (this.#cached.size <= identitiesMax && this.#weight <= weightMax) break
      if (oldId !== id) this.#drop(oldId, old)
    }
    return cached.grants
  }
}
