import { isInScope } from '../../entities/define.ts'
import { entityNamed } from '../../entities/registry.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { State } from '../state.ts'

/** One record before and after a run of writes. */
export interface Change {
  readonly id: string
  /** Undefined where it was not there. */
  readonly before: EntityRecord | undefined
  /** Undefined where it is gone. */
  readonly after: EntityRecord | undefined
}

/** Kinds that decide what an identity may use and is shown of it. */
const watched = [
  'apiSession',
  'config',
  'configType',
  'identity',
  'postureCheck',
  'service',
  'serviceConfig',
  'servicePolicy',
] as const
export type WatchedKind = (typeof watched)[number]

/**
 * What the writes of an entry come to, taken together: a record that was put back by the undo of a refused part, or came and
 * went within the entry, has not changed.
 */
export class EntryChanges {
  readonly #state: State
  #count = 0
  readonly #before = new Map<string, Map<string, EntityRecord | undefined>>(
    watched.map((kind) => [kind, new Map()]),
  )

  constructor(state: State) {
    this.#state = state
  }

  /** Each write, in the order in which they are done. */
  note(kind: string, id: string, before: EntityRecord | undefined): void {
    const known = this.#before.get(kind)
    if (known === undefined || known.has(id)) return
    known.set(id, before)
    this.#count += 1
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  /** Whether records of that kind were written, and of no other. */
  isOnlyOf(kind: WatchedKind): boolean {
    return this.#count > 0 && this.#before.get(kind)?.size === this.#count
  }

  /** A record out of the scope of its kind counts as not there. */
  of(kind: WatchedKind): Change[] {
    const entity = entityNamed(kind)
    const seen = (record: EntityRecord | undefined): EntityRecord | undefined =>
      record !== undefined && isInScope(entity, record) ? record : undefined
    const table = this.#state.table(kind)
    const found: Change[] = []
    for (const [id, record] of this.#before.get(kind) ?? []) {
      const before = seen(record)
      const after = seen(table.get(id))
      if (before !== after) found.push({ id, before, after })
    }
    return found
  }

  clear(): void {
    this.#count = 0
    // To clear an empty map costs as much as to make one.
    for (const known of this.#before.values()) if (known.size > 0) known.clear()
  }
}

export function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((text, at) => text === b[at]))
}
