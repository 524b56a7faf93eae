import { assert } from '../lib/assert.ts'
import type { Index } from './types.ts'

interface PendingWrite {
  readonly token: number
  readonly issuedTick: number
  /**
   * Index of the last entry of this write that is still valid. It decreases when a later write
   * replaces some of the entries.
   */
  lastIndex: Index
}

/**
 * Tracks which promises of this node are durable. Each write has a number (its token). A message
 * that promises something waits for the token of the write that makes the promise durable. A late
 * report of an old write must not count entries that a later write has replaced.
 */
export class DurabilityTracker {
  #lastToken = 0
  #durableToken = 0
  #hardStateToken = 0
  #isHardStateDirty = false
  #writtenIndex: Index
  #durableIndex: Index
  #pending: PendingWrite[] = []

  /** @param lastIndex index of the last entry on disk at start. */
  constructor(lastIndex: Index) {
    this.#writtenIndex = lastIndex
    this.#durableIndex = lastIndex
  }

  get durableToken(): number {
    return this.#durableToken
  }

  /** All entries up to this index are durable and equal to the entries in memory. */
  get durableIndex(): Index {
    return this.#durableIndex
  }

  /**
   * Index of the last entry that the Raft core has passed to the disk, whether it is durable yet or
   * not.
   */
  get writtenIndex(): Index {
    return this.#writtenIndex
  }

  get isHardStateDirty(): boolean {
    return this.#isHardStateDirty
  }

  /** Token of the write that makes the current term and vote durable. */
  get hardStateToken(): number {
    return this.#hardStateToken
  }

  /** Tick at which the oldest pending write was issued; null when none is pending. */
  get oldestPendingTick(): number | null {
    return this.#pending[0]?.issuedTick ?? null
  }

  touchHardState(): void {
    this.#isHardStateDirty = true
    this.#hardStateToken = this.#lastToken + 1
  }

  /** Token of the write that makes both entry `index` and the current term durable. */
  tokenFor(index: Index): number {
    if (index <= this.#durableIndex) return this.#hardStateToken
    if (index > this.#writtenIndex) return this.#lastToken + 1
    const write = this.#pending.find((pending) => pending.lastIndex >= index)
    assert(write !== undefined, `entry ${index} is durable or on its way`)
    return Math.max(write.token, this.#hardStateToken)
  }

  /**
   * Numbers a new write.
   * @returns the token of a write that makes all entries up to `lastIndex`, the term and the vote
   * durable.
   */
  issue(lastIndex: Index, tick: number): number {
    this.#lastToken += 1
    this.#pending.push({ token: this.#lastToken, issuedTick: tick, lastIndex })
    this.#writtenIndex = lastIndex
    this.#isHardStateDirty = false
    return this.#lastToken
  }

  /**
   * Called when the in-memory log replaces the entries from `from` on: their written or pending
   * copies no longer count as durable.
   */
  truncate(from: Index): void {
    this.#writtenIndex = Math.min(this.#writtenIndex, from - 1)
    this.#durableIndex = Math.min(this.#durableIndex, from - 1)
    // @guard late-report-of-a-replaced-write, 11-late-report-counts-replaced-entries
    for (const write of this.#pending) write.lastIndex = Math.min(write.lastIndex, from - 1)
  }

  /**
   * Numbers a write that replaces the whole log with an empty log that continues after `index`.
   * Until this write is durable, only the entries up to `commit` count as durable.
   * @returns the token of this write.
   */
  reset(index: Index, commit: Index, tick: number): number {
    this.truncate(commit + 1)
    this.#lastToken += 1
    this.#pending.push({ token: this.#lastToken, issuedTick: tick, lastIndex: index })
    this.#writtenIndex = index
    return this.#lastToken
  }

  persisted(token: number): void {
    assert(token <= this.#lastToken, `write ${token} was never issued`)
    this.#durableToken = Math.max(this.#durableToken, token)
    let done = 0
    for (const write of this.#pending) {
      if (write.token > token) break
      this.#durableIndex = Math.max(this.#durableIndex, write.lastIndex)
      done += 1
    }
    this.#pending.splice(0, done)
  }
}
