import { assert } from '../lib/assert.ts'
import type { Index } from './types.ts'

interface PendingWrite {
  readonly token: number
  readonly issuedTick: number
  /** Last entry of it that still stands; lowered when a later write replaces entries. */
  lastIndex: Index
}

/**
 * Tells which of our own promises are on disk. Writes are numbered; a promise waits for the number
 * of the write it rests on. A report of an old write must not count entries that a later write has
 * replaced meanwhile.
 */
export class Durability {
  #lastToken = 0
  #durableToken = 0
  #hardStateToken = 0
  #isHardStateDirty = false
  #writtenIndex: Index
  #durableIndex: Index
  #pending: PendingWrite[] = []

  /** `lastIndex`: the entries that were on disk at start. */
  constructor(lastIndex: Index) {
    this.#writtenIndex = lastIndex
    this.#durableIndex = lastIndex
  }

  get durableToken(): number {
    return this.#durableToken
  }

  /** Every entry up to here stands on disk as it stands in memory. */
  get durableIndex(): Index {
    return this.#durableIndex
  }

  /** Handed to the disk, durable or not. */
  get writtenIndex(): Index {
    return this.#writtenIndex
  }

  get isHardStateDirty(): boolean {
    return this.#isHardStateDirty
  }

  /** The write that term and vote rest on. */
  get hardStateToken(): number {
    return this.#hardStateToken
  }

  /** When the oldest write on its way was issued; null when there is none. */
  get oldestPendingTick(): number | null {
    return this.#pending[0]?.issuedTick ?? null
  }

  touchHardState(): void {
    this.#isHardStateDirty = true
    this.#hardStateToken = this.#lastToken + 1
  }

  /** The write that entry `index`, and the term it was accepted in, rest on. */
  tokenFor(index: Index): number {
    if (index <= this.#durableIndex) return this.#hardStateToken
    if (index > this.#writtenIndex) return this.#lastToken + 1
    const write = this.#pending.find((pending) => pending.lastIndex >= index)
    assert(write !== undefined, `entry ${index} is durable or on its way`)
    return Math.max(write.token, this.#hardStateToken)
  }

  /** @returns the token of a write that holds everything up to `lastIndex` and the hard state. */
  issue(lastIndex: Index, tick: number): number {
    this.#lastToken += 1
    this.#pending.push({ token: this.#lastToken, issuedTick: tick, lastIndex })
    this.#writtenIndex = lastIndex
    this.#isHardStateDirty = false
    return this.#lastToken
  }

  /**
   * Entries from `from` on are replaced in memory; whatever of them is on disk or on its way counts
   * no more.
   */
  truncate(from: Index): void {
    this.#writtenIndex = Math.min(this.#writtenIndex, from - 1)
    this.#durableIndex = Math.min(this.#durableIndex, from - 1)
    // @guard late-report-of-a-replaced-write, 11-late-report-counts-replaced-entries
    for (const write of this.#pending) write.lastIndex = Math.min(write.lastIndex, from - 1)
  }

  /**
   * The whole log is replaced by one that continues after `index`.
   * @returns the token of that reset.
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
