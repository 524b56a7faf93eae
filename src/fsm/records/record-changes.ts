import type { EntityRecord } from '../../lib/entity-record.ts'
import type { RecordChange } from '../../ports/change-feed.ts'

type Get = (kind: string, id: string) => EntityRecord | undefined

/**
 * What a run of writes comes to, taken together, of the kinds that somebody watches: a record that
 * was put back by the undo of a refused part, or came and went within it, has not changed.
 */
export class RecordChanges {
  readonly #before = new Map<string, Map<string, EntityRecord | undefined>>()
  #count = 0
  #isReplaced = false

  /**
   * @param kinds of tables; more may be watched later, and none is given up: that costs a map of a
   * few records.
   */
  constructor(kinds: readonly string[] = []) {
    for (const kind of kinds) this.watch(kind)
  }

  watch(kind: string): void {
    if (!this.#before.has(kind)) this.#before.set(kind, new Map())
  }

  /** Each write, in the order in which they are done; `before` is what stood there. */
  note(kind: string, id: string, before: EntityRecord | undefined): void {
    const known = this.#before.get(kind)
    if (known === undefined || known.has(id)) return
    known.set(id, before)
    this.#count += 1
  }

  /** All records may be others now: what was noted of single ones says nothing any more. */
  noteReplaced(): void {
    this.clear()
    this.#isReplaced = true
  }

  /** Whether all records may be others than at the last call. */
  takeReplaced(): boolean {
    const isReplaced = this.#isReplaced
    this.#isReplaced = false
    return isReplaced
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  /** Whether records of that kind were written, and of no other. */
  isOnlyOf(kind: string): boolean {
    return this.#count > 0 && this.#before.get(kind)?.size === this.#count
  }

  /**
   * Of one kind, in the order in which records were first written.
   * @param get what stands there now.
   */
  of(kind: string, get: Get): RecordChange[] {
    const changes: RecordChange[] = []
    const known = this.#before.get(kind)
    if (known !== undefined) this.#addOf(kind, known, get, changes)
    return changes
  }

  #addOf(
    kind: string,
    known: ReadonlyMap<string, EntityRecord | undefined>,
    get: Get,
    changes: RecordChange[],
  ): void {
    for (const [id, before] of known) {
      const after = get(kind, id)
      if (before !== after) changes.push({ kind, id, before, after })
    }
  }

  /** Of all kinds, one after the other; nothing is left noted. */
  take(get: Get): readonly RecordChange[] {
    if (this.isEmpty) return []
    const changes: RecordChange[] = []
    for (const [kind, known] of this.#before) {
      if (known.size > 0) this.#addOf(kind, known, get, changes)
    }
    this.clear()
    return changes
  }

  clear(): void {
    this.#count = 0
    // To clear an empty map costs as much as to make one.
    for (const known of this.#before.values()) if (known.size > 0) known.clear()
  }
}
