import type { Index, NodeId } from '../../raft/types.ts'

/**
 * Members compare the state at the same index: digests are taken at multiples of this, and where
 * apply comes to rest.
 */
export const DIGEST_INTERVAL_ENTRIES = 64
const INDEXES_KEPT = 4096

export interface DigestComparison {
  readonly index: Index
  readonly isSame: boolean
}

/** Own digests by index, and the comparison of peers' ones with them. */
export class DigestRing {
  readonly #own = new Map<Index, string>()
  /** A peer that is ahead of us: its word is kept until we get there. */
  readonly #waiting = new Map<NodeId, { readonly index: Index; readonly digest: string }>()

  record(index: Index, digest: string): void {
    this.#own.set(index, digest)
    if (this.#own.size <= INDEXES_KEPT) return
    const [oldest] = this.#own.keys()
    if (oldest !== undefined) this.#own.delete(oldest)
  }

  /** Our own digest at `index`; null: none was taken there, or it is forgotten. */
  at(index: Index): string | null {
    return this.#own.get(index) ?? null
  }

  /** The state was replaced: what was recorded of the old one proves nothing. */
  clear(): void {
    this.#own.clear()
    this.#waiting.clear()
  }

  /** Forgets what the peer said of a state that it does not answer for any more. */
  forget(peer: NodeId): void {
    this.#waiting.delete(peer)
  }

  /**
   * @param newest the index of our own latest digest.
   * @returns whether the peer's state is ours, and where; null when there is nothing to compare. A
   * difference goes first.
   */
  compare(peer: NodeId, index: Index, digest: string, newest: Index): DigestComparison | null {
    const waiting = this.#waiting.get(peer)
    let before: DigestComparison | null = null
    if (waiting !== undefined && waiting.index <= newest) {
      this.#waiting.delete(peer)
      before = this.#compared(waiting.index, waiting.digest)
      if (before?.isSame === false) return before
    }
    if (digest === '') return before
    if (index > newest) {
      if (!this.#waiting.has(peer)) this.#waiting.set(peer, { index, digest })
      return before
    }
    return this.#compared(index, digest) ?? before
  }

  #compared(index: Index, digest: string): DigestComparison | null {
    const own = this.#own.get(index)
    return own === undefined ? null : { index, isSame: own === digest }
  }
}
