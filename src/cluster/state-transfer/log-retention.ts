import { ENTRY_HEADER_BYTES } from '../../raft/entry-codec.ts'
import type { Entry, Index, Position } from '../../raft/types.ts'

export interface RetentionOptions {
  /** Entries kept behind apply, so that a member that was away for a while needs no snapshot. */
  readonly entries: number
  /** A slow live peer may hold back more than `entries`, but never more than this many bytes. */
  readonly bytes: number
  /** The same while a peer is filled by a snapshot, of what it will need after it. */
  readonly catchUpBytes: number
  /** Cuts are made at multiples of this, which bounds what has to be remembered. */
  readonly everyEntries?: number
}

interface Milestone {
  readonly position: Position
  /** Bytes of all entries applied in this process through `position`. */
  readonly bytes: number
}

/** Whichever comes first: large entries must not make the steps large. */
const MILESTONE_ENTRIES = 256
const MILESTONE_BYTES_MAX = 1024 * 1024
/**
 * A few large entries may weigh more than all that is to be kept: these are told apart one by one.
 */
const MILESTONES_A_RETENTION = 64

/**
 * Decides how much of the log may go; what is kept is kept in memory, too. That is at most `bytes`,
 * or `catchUpBytes`, and one step, of what was applied in this process, and what it found at its
 * start until as much has come after it. Knows every 256th position by default, and more where
 * entries are large, which is as exact as this needs to be.
 */
export class LogRetention {
  readonly #options: RetentionOptions
  #milestones: Milestone[] = []
  #bytes = 0
  /** Index of the last milestone. */
  #milestoneIndex: Index = 0
  #milestoneBytes = 0
  /** Bytes at the last cut. */
  #cutBytes = 0
  #applied: Index = 0

  constructor(options: RetentionOptions) {
    this.#options = options
  }

  /** Entries in index order, as they are applied. */
  note(entry: Entry): void {
    this.#applied = entry.index
    this.#bytes += ENTRY_HEADER_BYTES + entry.data.length
    const { everyEntries = MILESTONE_ENTRIES, bytes } = this.#options
    const stepBytesMax = Math.min(MILESTONE_BYTES_MAX, bytes / MILESTONES_A_RETENTION)
    const stepBytes = this.#bytes - this.#milestoneBytes
    if (entry.index % everyEntries !== 0 && stepBytes < stepBytesMax) return
    const position = { term: entry.term, index: entry.index }
    this.#milestones.push({ position, bytes: this.#bytes })
    this.#milestoneIndex = entry.index
    this.#milestoneBytes = this.#bytes
  }

  /** The log was replaced by a snapshot. */
  reset(): void {
    this.#milestones = []
    this.#milestoneBytes = this.#bytes
    this.#cutBytes = this.#bytes
  }

  /**
   * Whether a live peer that has the log through `index` will find what it needs in what is kept
   * for everyone.
   */
  isNear(index: Index): boolean {
    if (index >= this.#milestoneIndex) return true
    const behind = this.#milestones.findLast(({ position }) => position.index <= index)
    return this.#bytes - (behind?.bytes ?? this.#cutBytes) <= this.#options.bytes / 2
  }

  /**
   * @param persisted the state is durable up to here: the log must keep all that follows.
   * @param slowestLive what the slowest connected member has committed; Infinity when there is
   * none.
   * @param neededAfter what members that are filled by a snapshot will begin after; Infinity when
   * there are none.
   * @returns where to cut, or null when nothing is worth cutting. Each position is given out once.
   */
  cut(persisted: Index, slowestLive: Index, neededAfter: Index = Infinity): Position | null {
    // @guard 31-log-trimmed-under-a-slow-peer:1
    const byEntries = Math.min(this.#applied - this.#options.entries, slowestLive)
    let found = -1
    for (const [at, { position, bytes }] of this.#milestones.entries()) {
      if (position.index > persisted) break
      const keptBytes = this.#bytes - bytes
      if (position.index > byEntries && keptBytes < this.#options.bytes) break
      // @guard 31-log-trimmed-under-a-slow-peer:2
      if (position.index > neededAfter && keptBytes < this.#options.catchUpBytes) break
      found = at
    }
    const milestone = this.#milestones[found]
    if (milestone === undefined) return null
    this.#milestones.splice(0, found + 1)
    this.#cutBytes = milestone.bytes
    return milestone.position
  }
}
