import { deepStrictEqual } from 'node:assert'
import type { ModelEvent, PolicyMember } from '../../../src/ports/router-model.ts'

type Members = Map<PolicyMember, Set<string>>

/** A router's data model, built from events: a removed record is also removed from policies. */
export class FollowedModel {
  readonly #values = new Map<string, unknown>()
  readonly #members = new Map<string, Members>()

  apply(events: Iterable<ModelEvent>): void {
    for (const event of events) {
      if (event.kind === 'members') this.#move(event)
      else if (event.action === 'delete') this.#delete(event.kind, event.value.id)
      else this.#put(event)
    }
  }

  #put(event: Exclude<ModelEvent, { readonly kind: 'members' }>): void {
    const key = `${event.kind} ${event.value.id}`
    if ((event.action === 'create') === this.#values.has(key)) {
      throw new Error(
        `${event.action} of ${key}, which is ${this.#values.has(key) ? '' : 'not '}there`,
      )
    }
    this.#values.set(key, structuredClone(event.value))
    if (event.kind === 'servicePolicy' && event.action === 'create') {
      this.#members.set(event.value.id, new Map())
    }
  }

  #delete(kind: string, id: string): void {
    if (!this.#values.delete(`${kind} ${id}`)) throw new Error(`${kind} ${id} was not there`)
    if (kind === 'servicePolicy') this.#members.delete(id)
    for (const members of this.#members.values()) members.get(kind as PolicyMember)?.delete(id)
  }

  #move({ policyId, of, ids, isAdded }: Extract<ModelEvent, { readonly kind: 'members' }>): void {
    const members = this.#members.get(policyId)
    if (members === undefined) throw new Error(`policy ${policyId} is not there`)
    const known = members.get(of) ?? new Set()
    members.set(of, known)
    for (const id of ids) {
      if (!this.#values.has(`${of} ${id}`)) throw new Error(`${of} ${id} is not there`)
      if (known.has(id) === isAdded) {
        throw new Error(`${of} ${id} ${isAdded ? 'is in' : 'is not in'} ${policyId}`)
      }
      if (isAdded) known.add(id)
      else known.delete(id)
    }
  }

  /** Compares this model with a complete one. @throws if they differ. */
  holdAgainst(whole: FollowedModel): void {
    deepStrictEqual(this.#plain(), whole.#plain())
  }

  get size(): number {
    return this.#values.size
  }

  #plain(): unknown {
    const members = Array.from(this.#members, ([id, lists]) => [
      id,
      Array.from(lists, ([of, ids]) => [of, [...ids].sort()] as const)
        .filter(([, ids]) => ids.length > 0)
        .sort(),
    ])
    return { values: [...this.#values].sort(), members: members.sort() }
  }
}
