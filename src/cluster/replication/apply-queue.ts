import type { Clock } from '../../lib/clock.ts'
import type { AppliedEntry, Machine } from '../../ports/machine.ts'
import { releaseBuffer } from '../../lib/bounds/release-buffer.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { decodeEntries } from '../../raft/entry-codec.ts'
import type { Entry, Index } from '../../raft/types.ts'

/**
 * Apply gives the event loop back after this long, so that requests are answered while a backlog is
 * worked off.
 */
const SLICE_MS = 8
/** Between looks at the clock. */
const SLICE_ENTRIES = 32

export interface ApplyQueueParts {
  readonly machine: Machine
  readonly clock: Clock
  readonly onApplied: (entry: Entry, applied: AppliedEntry) => void
  /** After every slice that applied something. */
  readonly onProgress: () => void
  /** An entry could not be applied. It is not stepped over: nothing is applied after it. */
  readonly onFailed: (error: Error) => void
}

interface Batch {
  readonly packed: Uint8Array
  /** Views of it. */
  readonly entries: readonly Entry[]
}

const NO_BATCH: Batch = { packed: new Uint8Array(0), entries: [] }

/**
 * Applies committed entries in order, in slices. Its length is bounded by the host, which is told
 * how far it is.
 */
export class ApplyQueue {
  readonly #parts: ApplyQueueParts
  #batches: Batch[] = []
  #at = 0
  #isScheduled = false
  #isPaused = false
  #hasFailed = false
  /** Last entry handed over, or the one that those to come follow. */
  #received: Index
  /** Index up to which everything is inside the state already. */
  #standsAt: Index = 0

  constructor(parts: ApplyQueueParts) {
    this.#parts = parts
    this.#received = parts.machine.persistedMark().position.index
  }

  get hasFailed(): boolean {
    return this.#hasFailed
  }

  /**
   * How far this is with what it was given; the state itself may be further, when it came from a
   * member that was.
   */
  get applied(): Index {
    return Math.min(this.#parts.machine.progress().applied, this.#received)
  }

  /** Takes the buffer over: what is applied keeps nothing of it. */
  push(packed: Uint8Array): void {
    if (this.#hasFailed) return
    const entries = decodeEntries(packed)
    this.#received = entries.at(-1)?.index ?? this.#received
    const isNews = (entries[0]?.index ?? 0) > this.#standsAt
    const news = isNews ? entries : entries.filter(({ index }) => index > this.#standsAt)
    if (news.length > 0) this.#batches.push({ packed, entries: news })
    else this.#parts.onProgress()
    if (!this.#isScheduled) this.#run()
  }

  /** The machine was behind with writing, and may not be any more. */
  goOn(): void {
    if (this.#isScheduled || this.#batches.length === 0) return
    this.#isScheduled = true
    // Not at once: the machine is still about to take what it writes next.
    setImmediate(() => this.#run())
  }

  /** Pauses apply until it is resumed: the state is being replaced. */
  pause(): void {
    this.#isPaused = true
  }

  /**
   * State and log continue after `applied`: entries before it, of those not handed over yet, will
   * not come.
   */
  restartAfter(applied: Index): void {
    this.#received = Math.max(this.#received, applied)
    this.resumeAfter(applied)
  }

  /** The state stands at `applied` now: what was waiting from before it is inside it. */
  resumeAfter(applied: Index): void {
    this.#isPaused = false
    this.#standsAt = applied
    this.#at = 0
    this.#batches = this.#batches
      .map(({ packed, entries }) => ({
        packed,
        entries: entries.filter(({ index }) => index > applied),
      }))
      .filter(({ entries }) => entries.length > 0)
    if (!this.#isScheduled) this.#run()
  }

  stop(): void {
    this.#hasFailed = true
    this.#batches = []
  }

  #run(): void {
    this.#isScheduled = false
    if (this.#isPaused || this.#hasFailed || this.#batches.length === 0) return
    const endMs = this.#parts.clock.monotonicMs() + SLICE_MS
    do {
      if (!this.#applySome(SLICE_ENTRIES)) break
    } while (this.#batches.length > 0 && this.#parts.clock.monotonicMs() < endMs)
    this.#parts.onProgress()
    if (!this.#hasFailed && !this.#parts.machine.isBehind) this.goOn()
  }

  /** @returns false when nothing more can be applied now. */
  #applySome(count: number): boolean {
    const { packed, entries: batch } = this.#batches[0] ?? NO_BATCH
    const end = Math.min(this.#at + count, batch.length)
    while (this.#at < end) {
      if (this.#parts.machine.isBehind) return false
      const entry = batch[this.#at]
      if (entry === undefined || !this.#apply(entry)) return false
      this.#at += 1
    }
    if (this.#at >= batch.length) {
      this.#batches.shift()
      this.#at = 0
      releaseBuffer(packed)
    }
    return true
  }

  #apply(entry: Entry): boolean {
    let applied: AppliedEntry
    try {
      applied = this.#parts.machine.apply(entry)
    } catch (error) {
      this.#hasFailed = true
      const cause = errorMessage(error)
      this.#parts.onFailed(
        new Error(`entry ${entry.index} cannot be applied by this release: ${cause}`, {
          cause: error,
        }),
      )
      return false
    }
    this.#parts.onApplied(entry, applied)
    return true
  }
}
