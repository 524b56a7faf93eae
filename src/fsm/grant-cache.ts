import type { EntityRecord } from '../lib/entity-record.ts'
import { serviceGrants } from './roles.ts'
import type { State } from './state.ts'

export interface Grants {
  /** Service id → bits of BIND and DIAL. */
  readonly bits: ReadonlyMap<string, number>
  /** The ids, sorted. */
  readonly ids: readonly string[]
}

interface Cached extends Grants {
  readonly services: number
  readonly policies: number
  readonly revision: number
}

const identitiesMax = 1024
const grantsMax = 2_000_000

/**
 * What each identity may use, kept until a policy, a service's membership or attributes, or the identity changes. It is not
 * part of the state: it can be dropped at any time. The least recently used go first.
 */
export class GrantCache {
  readonly #state: State
  readonly #cached = new Map<string, Cached>()
  #grants = 0

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
    const bits = serviceGrants(this.#state, identity)
    return this.#keep(id, { bits, ids: [...bits.keys()].sort(), services, policies, revision })
  }

  #drop(id: string, cached: Cached): void {
    this.#cached.delete(id)
    this.#grants -= cached.ids.length
  }

  #keep(id: string, cached: Cached): Cached {
    this.#cached.set(id, cached)
    this.#grants += cached.ids.length
    for (const [oldId, old] of this.#cached) {
      if (this.#cached.size <= identitiesMax && this.#grants <= grantsMax) break
      if (oldId !== id) this.#drop(oldId, old)
    }
    return cached
  }
}
