import type { KindName } from '../entities/kind-records.ts'
import type { ChangeFollower, EntryFacts, RecordChange } from '../ports/change-feed.ts'
import type { Index } from '../raft/types.ts'

/**
 * Subscribers to record changes outside of apply, with the kinds of tables that each one follows.
 */
export class Followers {
  readonly #all = new Set<{ readonly kinds: ReadonlySet<KindName>; readonly of: ChangeFollower }>()

  /** @returns the way to end it. */
  add(kinds: readonly KindName[], of: ChangeFollower): () => void {
    const follower = { kinds: new Set(kinds), of }
    this.#all.add(follower)
    return () => {
      this.#all.delete(follower)
    }
  }

  /** Kinds that any of them follows. */
  *kinds(): Generator<KindName> {
    for (const { kinds } of this.#all) yield* kinds
  }

  /** All records may be others than before. */
  onReplaced(): void {
    for (const { of } of this.#all) of.onReplaced()
  }

  onEntry(index: Index, changes: readonly RecordChange[], facts: EntryFacts): void {
    for (const { kinds, of } of this.#all) {
      const isAll = changes.every(({ kind }) => kinds.has(kind))
      const own = isAll ? changes : changes.filter(({ kind }) => kinds.has(kind))
      try {
        if (own.length > 0) of.onEntry(index, own, facts)
      } catch {
        // An error of a follower must not stop apply; the follower can rebuild its data from the
        // records.
        of.onReplaced()
      }
    }
  }
}
