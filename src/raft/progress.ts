import type { Index, NodeId } from './types.ts'

/**
 * probe: one request at a time until the logs are known to agree. replicate: requests follow one
 * another without waiting, up to the window. snapshot: what the peer needs is gone from the log;
 * nothing is sent until it has it.
 */
export type ProgressState = 'probe' | 'replicate' | 'snapshot'

/**
 * Knowledge of the leader about one peer. `matchIndex` falls only for a peer that says it has lost
 * what it acknowledged; `nextIndex` > `matchIndex` always holds.
 */
export class Progress {
  readonly id: NodeId
  matchIndex: Index = 0
  nextIndex: Index
  state: ProgressState = 'probe'
  /** probe: one request is out; the next waits for an answer or a heartbeat's. */
  isProbeOut = false
  lastContactTick: number
  ackedReadSequence = 0
  /** The highest commit index this peer has been told of. */
  commitSent: Index = 0
  /** snapshot: when its sender reported the end; null while it is on its way. */
  snapshotSentTick: number | null = null
  /** When a request was last sent to find out where the peer stands, or whether one was lost. */
  lastProbeTick = 0
  /** The start of its store in which it owes, as it said last; null while it owes nothing. */
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
   * Late and repeated answers change nothing.
   * @returns whether the peer is now known to have more.
   */
  acknowledge(matchIndex: Index): boolean {
    const isNews = matchIndex > this.matchIndex
    // @guard match-index-regresses
    if (isNews) this.matchIndex = matchIndex
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
    return isNews
  }

  /**
   * Notes that what it acknowledged is on its disk no more. Said late or twice this costs a probe:
   * what was committed by counting it stays so, for the peer votes for nobody who lacks it.
   */
  forget(): void {
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
