import type { ReadResult } from './effects.ts'
import type { Index } from './types.ts'

interface Round {
  readonly sequence: number
  readonly index: Index
  readonly ids: readonly number[]
}

/**
 * Linearizable reads without a log entry (dissertation 6.4). A round records the commit index, and
 * is confirmed once a quorum has answered a heartbeat that the leader sent after the round began.
 * Round numbers only increase, so a late response to an older heartbeat cannot confirm a newer
 * read. Only one round is in progress; reads that arrive meanwhile share the next round.
 */
export class LinearizableReadQueue {
  readonly #readsMax: number
  #sequence = 0
  #waiting: number[] = []
  #out: Round | null = null
  #results: ReadResult[] = []

  constructor(readsMax: number) {
    this.#readsMax = readsMax
  }

  /** Number of the newest round. Every heartbeat contains this number. */
  get sequence(): number {
    return this.#sequence
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0
  }

  get isRoundOut(): boolean {
    return this.#out !== null
  }

  get length(): number {
    return this.#waiting.length + (this.#out?.ids.length ?? 0)
  }

  add(id: number): void {
    if (this.length >= this.#readsMax) this.#results.push({ id, ok: false, code: 'OVERLOADED' })
    else this.#waiting.push(id)
  }

  refuse(id: number): void {
    this.#results.push({ id, ok: false, code: 'NOT_LEADER' })
  }

  /**
   * Begins a round for all waiting reads. Reads of an unconfirmed round join the new round, because
   * a later response confirms them too.
   */
  begin(commit: Index): void {
    // @guard 24-joining-read-keeps-the-old-round-number
    this.#sequence += 1
    const ids = this.#out === null ? this.#waiting : [...this.#out.ids, ...this.#waiting]
    this.#out = { sequence: this.#sequence, index: commit, ids }
    this.#waiting = []
  }

  /**
   * Completes the reads of the round in progress, unless its number is higher than `sequence`.
   * @param sequence number of the highest round for which a quorum has responded.
   */
  confirm(sequence: number): void {
    // @guard older-round-confirms-newer-read
    if (this.#out === null || sequence < this.#out.sequence) return
    for (const id of this.#out.ids) this.#results.push({ id, ok: true, index: this.#out.index })
    this.#out = null
  }

  /** Refuses all reads, because this node lost the leadership on which they relied. */
  refuseAll(): void {
    for (const id of this.#out?.ids ?? []) this.refuse(id)
    for (const id of this.#waiting) this.refuse(id)
    this.#out = null
    this.#waiting = []
  }

  takeResults(): readonly ReadResult[] {
    const results = this.#results
    this.#results = []
    return results
  }
}
