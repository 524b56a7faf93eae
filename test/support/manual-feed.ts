import type { KindName } from '../../src/entities/kind-records.ts'
import type { ChangeFeed, ChangeListener, RecordChange } from '../../src/ports/change-feed.ts'

/** A change feed whose entries the test sends. */
export class ManualFeed implements ChangeFeed {
  readonly #followers = new Set<{
    readonly kinds: readonly KindName[]
    readonly of: ChangeListener
  }>()

  get followed(): readonly string[] {
    return [...this.#followers].flatMap(({ kinds }) => kinds)
  }

  follow(kinds: readonly KindName[], of: ChangeListener): () => void {
    const follower = { kinds, of }
    this.#followers.add(follower)
    return () => {
      this.#followers.delete(follower)
    }
  }

  change(kind: KindName, id: string): void {
    const change: RecordChange = { kind, id, before: undefined, after: undefined }
    for (const { kinds, of } of this.#followers)
      if (kinds.includes(kind)) of.onEntry(1, [change], { timeMs: 0, audit: null })
  }
}
