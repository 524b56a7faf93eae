const BITS = 32
const FIRST_WORDS = 32

/**
 * Records which sessions were sent to which readers, with one bit for each pair, because there may
 * be a million sessions and a thousand routers.
 */
export class SentSessionIndex<R extends object> {
  readonly #slots = new Map<string, number>()
  readonly #free: number[] = []
  readonly #byReader = new Map<R, Uint32Array>()

  /** Readers for which `setAll` was called, also those without any sessions. */
  readers(): IterableIterator<R> {
    return this.#byReader.keys()
  }

  isKnown(reader: R): boolean {
    return this.#byReader.has(reader)
  }

  has(reader: R, sessionId: string): boolean {
    const slot = this.#slots.get(sessionId)
    if (slot === undefined) return false
    const word = this.#byReader.get(reader)?.[Math.floor(slot / BITS)] ?? 0
    return (word & (1 << (slot % BITS))) !== 0
  }

  /** Replaces the sessions that were sent to this reader. */
  setAll(reader: R, sessionIds: Iterable<string>): void {
    this.#byReader.set(reader, new Uint32Array(FIRST_WORDS))
    for (const id of sessionIds) this.set(reader, id, true)
  }

  set(reader: R, sessionId: string, isSent: boolean): void {
    const known = this.#byReader.get(reader)
    if (known === undefined || (!isSent && !this.#slots.has(sessionId))) return
    const slot = this.#slotOf(sessionId)
    const at = Math.floor(slot / BITS)
    const words = at < known.length ? known : grown(known, at)
    if (words !== known) this.#byReader.set(reader, words)
    const bit = 1 << (slot % BITS)
    words[at] = isSent ? (words[at] ?? 0) | bit : (words[at] ?? 0) & ~bit
  }

  /** Removes a session that has ended, and frees its bits for another session. */
  forget(sessionId: string): void {
    const slot = this.#slots.get(sessionId)
    if (slot === undefined) return
    for (const reader of this.#byReader.keys()) this.set(reader, sessionId, false)
    this.#slots.delete(sessionId)
    this.#free.push(slot)
  }

  drop(reader: R): void {
    this.#byReader.delete(reader)
  }

  clear(): void {
    this.#slots.clear()
    this.#free.length = 0
    this.#byReader.clear()
  }

  #slotOf(sessionId: string): number {
    const known = this.#slots.get(sessionId)
    if (known !== undefined) return known
    const slot = this.#free.pop() ?? this.#slots.size
    this.#slots.set(sessionId, slot)
    return slot
  }
}

function grown(words: Uint32Array, at: number): Uint32Array {
  const larger = new Uint32Array(Math.max(at + 1, 2 * words.length))
  larger.set(words)
  return larger
}
