import type { Index, NodeId } from '../../raft/types.ts'

/**
 * Members compare their states at equal indexes. They compute a digest at multiples of this number,
 * and whenever the state machine has no entries to apply.
 */
export const DIGEST_INTERVAL_ENTRIES = 64
const INDEXES_KEPT = 4096

export interface DigestComparison {
  readonly index: Index
  readonly isSame: boolean
}

/**
 * Digests of this controller's state by index, and their comparison with the digests of peers.
 */
export class DigestRing {
  readonly #own = new Map<Index, string>()
  /**
   * For each peer that is ahead, a digest that waits until this controller reaches its index. Later
   * digests of that peer do not replace it.
   */
  readonly #waiting = new Map<NodeId, { readonly index: Index; readonly digest: string }>()

  record(index: Index, digest: string): void {
    this.#own.set(index, digest)
    if (this.#own.size <= INDEXES_KEPT) return
    const [oldest] = this.#own.keys()
    if (oldest !== undefined) this.#own.delete(oldest)
  }

  /** This controller's digest at `index`; null if it computed none there, or has dropped it. */
  at(index: Index): string | null {
    return this.#own.get(index) ?? null
  }

  /** Drops all digests, because another state replaced the one that they describe. */
  clear(): void {
    this.#own.clear()
    this.#waiting.clear()
  }

  /**
   * Drops the digest of a peer that reports itself as failing: the peer does not answer requests
   * from the state that the digest describes.
   */
  forget(peer: NodeId): void {
    this.#waiting.delete(peer)
  }

  /**
   * Compares a peer's digest with this controller's.
   * @param newest index of the latest digest of this controller.
   * @returns the result, and the index at which the states were compared; null if no index can be
   * compared. A difference takes precedence over equality.
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
