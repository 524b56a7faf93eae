import { type Entity, isInScope } from '../../entities/define.ts'
import { entityNamed } from '../../entities/registry.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import { RecordChanges } from '../records/record-changes.ts'
import type { State } from '../records/state.ts'

export type Change = RecordChange

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
 * Changes of an entry that matter for access; asked within apply, so that they are kept apart from
 * what followers are told.
 */
export class EntryChanges {
  readonly #state: State
  readonly #changes = new RecordChanges(watched)

  constructor(state: State) {
    this.#state = state
  }

  note(kind: string, id: string, before: EntityRecord | undefined): void {
    this.#changes.note(kind, id, before)
  }

  get isEmpty(): boolean {
    return this.#changes.isEmpty
  }

  isOnlyOf(kind: WatchedKind): boolean {
    return this.#changes.isOnlyOf(kind)
  }

  /** A record out of the scope of its kind counts as not there. */
  of(kind: WatchedKind): Change[] {
    const table = this.#state.table(kind)
    return this.#changes
      .of(kind, (_kind, id) => table.get(id))
      .map((change) => changeInScope(entityNamed(kind), change))
      .filter(({ before, after }) => before !== after)
  }

  clear(): void {
    this.#changes.clear()
  }
}

/** The change as the kind sees it: a record out of its scope counts as not there. */
export function changeInScope(entity: Entity, change: RecordChange): RecordChange {
  const seen = (record: EntityRecord | undefined): EntityRecord | undefined =>
    record !== undefined && isInScope(entity, record) ? record : undefined
  return { ...change, before: seen(change.before), after: seen(change.after) }
}

export function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((text, at) => text === b[at]))
}
