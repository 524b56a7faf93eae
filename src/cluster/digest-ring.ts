import type { Index } from '../raft/types.ts'

/** Members compare the state at the same index: digests are taken at multiples of this, and where apply comes to rest. */
export const DIGEST_INTERVAL_ENTRIES = 64
const INDEXES_KEPT = 4096

/** Own digests by index, and the comparison of peers' ones with them. */
export class DigestRing {
  readonly #own = new Map<Index, string>()
  /** A peer that is ahead of us: its word is kept until we get there. */
  readonly #waiting = new Map<string, { readonly index: Index; readonly digest: string }>()

  record(index: Index, digest: string): void {
    this.#own.set(index, digest)
    if (this.#own.size <= INDEXES_KEPT) return
    const [oldest] = this.#own.keys()
    if (oldest !== undefined) this.#own.delete(oldest)
  }

  /** The state was replaced: what was recorded of the old one proves nothing. */
  clear(): void {
    this.#own.clear()
    this.#waiting.clear()
  }

  /**
   * @param newest the index of our own latest digest.
   * @returns the index at which the peer's state is not ours, or null when nothing is known against it.
   */
  compare(peer: string, index: Index, digest: string, newest: Index): Index | null {
    const waiting = this.#waiting.get(peer)
    if (waiting !== undefined && waiting.index <= newest) {
      this.#waiting.delete(peer)
      if (this.#differs(waiting.index, waiting.digest)) return waiting.index
    }
    if (digest === '') return null
    if (index > newest) {
      if (!this.#waiting.has(peer)) this.#waiting.set(peer, { index, digest })
      return null
    }
    return this.#differs(index, digest) ? index : null
  }

  #differs(index: Index, digest: string): boolean {
    const own = this.#own.get(index)
    return own !== undefined && own !== digest
  }
}
