import type { EntityRecord } from '../lib/entity-record.ts'
import type { RecordChange } from '../ports/change-feed.ts'

/**
 * What the writes of an entry come to, taken together, of the kinds that somebody follows: a record that was put back by the
 * undo of a refused part, or came and went within the entry, has not changed.
 */
export class RecordChanges {
  readonly #before = new Map<string, Map<string, EntityRecord | undefined>>()
  #isEmpty = true

  /** From now on; no end is needed, as a kind that nobody follows costs a map of a few records. */
  watch(kind: string): void {
    if (!this.#before.has(kind)) this.#before.set(kind, new Map())
  }

  /** Each write, in the order in which they are done; `before` is what stood there. */
  note(kind: string, id: string, before: EntityRecord | undefined): void {
    const known = this.#before.get(kind)
    if (known === undefined || known.has(id)) return
    known.set(id, before)
    this.#isEmpty = false
  }

  /** In the order in which records were first written, a kind after the other; nothing is left noted. */
  take(get: (kind: string, id: string) => EntityRecord | undefined): readonly RecordChange[] {
    if (this.#isEmpty) return []
    const changes: RecordChange[] = []
    for (const [kind, known] of this.#before) {
      for (const [id, before] of known) {
        const after = get(kind, id)
        if (before !== after) changes.push({ kind, id, before, after })
      }
      known.clear()
    }
    this.#isEmpty = true
    return changes
  }
}
