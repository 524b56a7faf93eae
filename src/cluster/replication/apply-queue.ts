import type { Clock } from '../../lib/clock.ts'
import type { AppliedEntry, ReplicatedStateMachine } from '../../ports/replicated-state-machine.ts'
import { releaseBuffer } from '../../lib/bounds/release-buffer.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { decodeEntries } from '../../raft/entry-codec.ts'
import type { Entry, Index } from '../../raft/types.ts'

/**
 * After this time, checked every `SLICE_ENTRIES` entries, the queue lets the event loop handle
 * other events, so that the controller serves requests while many entries wait.
 */
const SLICE_MS = 8
/** Entries applied between two reads of the clock. */
const SLICE_ENTRIES = 32

interface ApplyQueueDeps {
  readonly machine: ReplicatedStateMachine
  readonly clock: Clock
  readonly onApplied: (entry: Entry, applied: AppliedEntry) => void
  /** Called after every slice, and when all received entries are already in the state. */
  readonly onProgress: () => void
  /**
   * Called when an entry could not be applied. The queue neither skips it nor applies anything
   * after it.
   */
  readonly onFailed: (error: Error) => void
}

interface Batch {
  readonly packed: Uint8Array
  /** Decoded entries; they are views into `packed`. */
  readonly entries: readonly Entry[]
}

const NO_BATCH: Batch = { packed: new Uint8Array(0), entries: [] }

/**
 * Applies committed entries in order, in time slices. The consensus thread limits the queue by the
 * progress that this class reports.
 */
export class ApplyQueue {
  readonly #deps: ApplyQueueDeps
  #batches: Batch[] = []
  #at = 0
  #isScheduled = false
  #isPaused = false
  #hasFailed = false
  /** Index of the last received entry; at first, the index of the persisted state. */
  #received: Index
  /** The state contains everything up to this index. */
  #standsAt: Index = 0

  constructor(deps: ApplyQueueDeps) {
    this.#deps = deps
    this.#received = deps.machine.persistedMark().position.index
  }

  get hasFailed(): boolean {
    return this.#hasFailed
  }

  /**
   * Index up to which received entries are applied. The state may be further ahead if it came from
   * a member that was ahead.
   */
  get applied(): Index {
    return Math.min(this.#deps.machine.progress().applied, this.#received)
  }

  /** Takes ownership of the buffer, which is released once its entries are applied. */
  push(packed: Uint8Array): void {
    if (this.#hasFailed) return
    const entries = decodeEntries(packed)
    this.#received = entries.at(-1)?.index ?? this.#received
    const isNews = (entries[0]?.index ?? 0) > this.#standsAt
    const news = isNews ? entries : entries.filter(({ index }) => index > this.#standsAt)
    if (news.length > 0) this.#batches.push({ packed, entries: news })
    else this.#deps.onProgress()
    if (!this.#isScheduled) this.#run()
  }

  /**
   * Continues to apply. Called when the state machine has written pending changes and may accept
   * entries again.
   */
  goOn(): void {
    if (this.#isScheduled || this.#batches.length === 0) return
    this.#isScheduled = true
    // The next run is in a later turn, because the state machine is about to start its next write.
    setImmediate(() => this.#run())
  }

  /** Pauses applying while the state is replaced. */
  pause(): void {
    this.#isPaused = true
  }

  /**
   * Continues after a snapshot became the state at `applied`, from which the log continues too. The
   * queue receives no entries up to `applied` any more.
   */
  restartAfter(applied: Index): void {
    this.#received = Math.max(this.#received, applied)
    this.resumeAfter(applied)
  }

  /**
   * Continues after another state was installed at `applied`, which contains all queued entries up
   * to that index.
   */
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
    const endMs = this.#deps.clock.monotonicMs() + SLICE_MS
    do {
      if (!this.#applySome(SLICE_ENTRIES)) break
    } while (this.#batches.length > 0 && this.#deps.clock.monotonicMs() < endMs)
    this.#deps.onProgress()
    if (!this.#hasFailed && !this.#deps.machine.isBehind) this.goOn()
  }

  /**
   * Applies entries of the queue.
   * @returns false when nothing more can be applied at present.
   */
  #applySome(count: number): boolean {
    const { packed, entries: batch } = this.#batches[0] ?? NO_BATCH
    const end = Math.min(this.#at + count, batch.length)
    while (this.#at < end) {
      if (this.#deps.machine.isBehind) return false
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
      applied = this.#deps.machine.apply(entry)
    } catch (error) {
      this.#hasFailed = true
      const cause = errorMessage(error)
      this.#deps.onFailed(
        new Error(`entry ${entry.index} cannot be applied by this release: ${cause}`, {
          cause: error,
        }),
      )
      return false
    }
    this.#deps.onApplied(entry, applied)
    return true
  }
}
