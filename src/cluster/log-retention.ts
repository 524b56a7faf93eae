import { ENTRY_HEADER_BYTES } from '../raft/entry-codec.ts'
import type { Entry, Index, Position } from '../raft/types.ts'

export interface RetentionOptions {
  /** Entries kept behind apply, so that a member that was away for a while needs no snapshot. */
  readonly entries: number
  /** A slow live peer may hold back more than `entries`, but never more than this many bytes. */
  readonly bytes: number
}

interface Milestone {
  readonly position: Position
  /** Of all entries applied in this process through `position`. */
  readonly bytes: number
}

const MILESTONE_ENTRIES = 256
/** A few large entries may weigh more than all that is to be kept: these are told apart one by one. */
const MILESTONES_A_RETENTION = 64

/** Decides how much of the log may go. Knows every 256th position, more where entries are large, which
 * is as exact as this needs to be. */
export class LogRetention {
  readonly #options: RetentionOptions
  #milestones: Milestone[] = []
  #bytes = 0
  /** `#bytes` at the last milestone. */
  #markedBytes = 0
  #applied: Index = 0

  constructor(options: RetentionOptions) {
    this.#options = options
  }

  /** Entries in index order, as they are applied. */
  note(entry: Entry): void {
    this.#applied = entry.index
    this.#bytes += ENTRY_HEADER_BYTES + entry.data.length
    const bytesSince = this.#bytes - this.#markedBytes
    const isFar = bytesSince * MILESTONES_A_RETENTION >= this.#options.bytes
    if (entry.index % MILESTONE_ENTRIES !== 0 && !isFar) return
    const position = { term: entry.term, index: entry.index }
    this.#markedBytes = this.#bytes
    this.#milestones.push({ position, bytes: this.#bytes })
  }

  /** The log was replaced by a snapshot. */
  reset(): void {
    this.#milestones = []
  }

  /**
   * @param persisted the state is durable up to here: the log must keep all that follows.
   * @param slowestLive what the slowest connected member has committed; Infinity when there is none.
   * @returns where to cut, or null when nothing is worth cutting. Each position is given out once.
   */
  cut(persisted: Index, slowestLive: Index): Position | null {
    const byEntries = Math.min(this.#applied - this.#options.entries, slowestLive)
    let found = -1
    for (const [at, { position, bytes }] of this.#milestones.entries()) {
      if (position.index > persisted) break
      const isTooMuch = this.#bytes - bytes >= this.#options.bytes
      if (position.index > byEntries && !isTooMuch) break
      found = at
    }
    const milestone = this.#milestones[found]
    if (milestone === undefined) return null
    this.#milestones.splice(0, found + 1)
    return milestone.position
  }
}
