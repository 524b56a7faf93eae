import type { Index, NodeId } from './types.ts'

/**
 * probe: one request at a time until the logs are known to agree. replicate: pipelined requests, up
 * to the window. snapshot: the peer needs compacted entries; the leader sends none until the peer
 * has the snapshot.
 */
export type ProgressState = 'probe' | 'replicate' | 'snapshot'

/**
 * The leader's view of one peer. `matchIndex` falls only when the peer reports that it lost entries
 * it had acknowledged. `nextIndex` is always greater than `matchIndex`.
 */
export class Progress {
  readonly id: NodeId
  matchIndex: Index = 0
  nextIndex: Index
  state: ProgressState = 'probe'
  /**
   * probe: one request is in flight; the next one waits for its answer or for a heartbeat response.
   */
  isProbeOut = false
  lastContactTick: number
  ackedReadSequence = 0
  /** The highest commit index sent to this peer. */
  commitSent: Index = 0
  /** snapshot: tick at which the sender reported its end; null while it is being sent. */
  snapshotSentTick: number | null = null
  /** Tick of the last probe for the peer's position or for a lost request. */
  lastProbeTick = 0
  /**
   * The boot number with which the peer last reported a missing tail (owed.ts); null when it has
   * none.
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
   * Late and repeated answers have no effect.
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
   * The peer reported that it lost entries that it had acknowledged. A late or repeated report
   * costs only a probe. Entries that were committed by counting this peer stay committed, because
   * the peer votes only for candidates that have them.
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
