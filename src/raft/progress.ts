import type { Index, NodeId } from './types.ts'

/**
 * probe: the leader sends one request at a time until the logs are known to agree. replicate: it
 * sends requests without waiting for responses, up to the window. snapshot: the peer needs
 * compacted entries; the leader sends no entries until the peer has the snapshot or the transfer
 * has failed.
 */
export type ProgressState = 'probe' | 'replicate' | 'snapshot'

/**
 * The leader's view of one peer. `matchIndex` decreases only when the peer reports that it lost
 * entries that it had acknowledged. `nextIndex` is always greater than `matchIndex`.
 */
export class Progress {
  readonly id: NodeId
  matchIndex: Index = 0
  nextIndex: Index
  state: ProgressState = 'probe'
  /**
   * Only in state `probe`: the next request waits for the response to the last request, or for a
   * heartbeat response.
   */
  isProbeOut = false
  lastContactTick: number
  ackedReadSequence = 0
  /** The highest commit index that messages to this peer allow it to adopt. */
  commitSent: Index = 0
  /**
   * Only in state `snapshot`: tick at which sending the snapshot finished; null while the snapshot
   * is being sent.
   */
  snapshotSentTick: number | null = null
  /** Tick at which the leader last probed for the peer's position or for a lost request. */
  lastProbeTick = 0
  /**
   * Boot number in the peer's last report of a missing tail (missing-tail.ts); null when the peer
   * has no missing tail.
   */
  owingBoot: number | null = null
  #inflightIndexes: Index[] = []
  #inflightBytes: number[] = []
  #bytesInFlight = 0

  constructor(id: NodeId, nextIndex: Index, tick: number) {
    this.id = id
    this.nextIndex = nextIndex
    this.lastContactTick = tick
  }

  get bytesInFlight(): number {
    return this.#bytesInFlight
  }

  get messagesInFlight(): number {
    return this.#inflightIndexes.length
  }

  addInflight(lastIndex: Index, bytes: number): void {
    this.#inflightIndexes.push(lastIndex)
    this.#inflightBytes.push(bytes)
    this.#bytesInFlight += bytes
    this.nextIndex = lastIndex + 1
  }

  /**
   * Records an acknowledgment; late and repeated ones have no effect.
   * @returns whether `matchIndex` advanced.
   */
  acknowledge(matchIndex: Index): boolean {
    const isAdvance = matchIndex > this.matchIndex
    // @guard match-index-regresses
    if (isAdvance) this.matchIndex = matchIndex
    if (this.nextIndex <= this.matchIndex) this.nextIndex = this.matchIndex + 1
    let done = 0
    while ((this.#inflightIndexes[done] ?? Infinity) <= this.matchIndex) {
      this.#bytesInFlight -= this.#inflightBytes[done] ?? 0
      done += 1
    }
    if (done > 0) {
      this.#inflightIndexes.splice(0, done)
      this.#inflightBytes.splice(0, done)
    }
    return isAdvance
  }

  /**
   * Called when the peer reports that it lost entries that it had acknowledged. A late or repeated
   * report causes only one more probe. Entries that were committed by counting this peer stay
   * committed, because the peer votes only for candidates that have these entries.
   */
  forgetMatch(): void {
    this.matchIndex = 0
  }

  becomeProbe(nextIndex: Index): void {
    this.#enter('probe')
    this.nextIndex = Math.max(nextIndex, this.matchIndex + 1)
  }

  becomeReplicate(): void {
    this.#enter('replicate')
    this.nextIndex = this.matchIndex + 1
  }

  becomeSnapshot(): void {
    this.#enter('snapshot')
  }

  #enter(state: ProgressState): void {
    this.state = state
    this.isProbeOut = false
    this.snapshotSentTick = null
    this.#inflightIndexes = []
    this.#inflightBytes = []
    this.#bytesInFlight = 0
  }
}
