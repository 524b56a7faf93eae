import { ENTRY_HEADER_BYTES } from '../../raft/entry-codec.ts'
import type { Entry, Index, Position } from '../../raft/types.ts'

export interface RetentionOptions {
  /**
   * Number of applied entries that the log keeps, within `bytes`, so that a member that was
   * disconnected for a short time can catch up without a snapshot.
   */
  readonly entries: number
  /**
   * Maximum bytes of the entries that the log keeps: the last `entries` entries, and the entries
   * that the slowest connected member needs.
   */
  readonly bytes: number
  /**
   * Maximum bytes of the entries that the log keeps while a member receives a snapshot, so that the
   * member can continue after the snapshot without another one.
   */
  readonly catchUpBytes: number
  /**
   * At every multiple of this number of entries, and more often if entries are large, the log has a
   * milestone (a position at which it can be cut).
   */
  readonly everyEntries?: number
}

interface Milestone {
  readonly position: Position
  /** Bytes of all entries applied in this process through `position`. */
  readonly bytes: number
}

/**
 * A milestone (a position at which the log can be cut) is recorded at each multiple of this number
 * of entries, and after at most this number of bytes.
 */
const MILESTONE_ENTRIES = 256
const MILESTONE_BYTES_MAX = 1024 * 1024
/**
 * Minimum number of milestones (positions at which the log can be cut) in the retained bytes, so
 * that a few large entries do not make the distance between two milestones too long.
 */
const MILESTONES_A_RETENTION = 64

/**
 * Decides how much of the log can be compacted. Retained entries also stay in memory. Of the
 * entries applied in this process, they are at most `bytes` or `catchUpBytes`, plus one step and
 * the entries that are not persisted yet; at first, they also include the entries that the log had
 * at the start. Milestones are at every 256th entry by default, and more often if entries are
 * large.
 */
export class LogRetention {
  readonly #options: RetentionOptions
  #milestones: Milestone[] = []
  #bytes = 0
  /** Index of the newest milestone (a position at which the log can be cut). */
  #milestoneIndex: Index = 0
  #milestoneBytes = 0
  /** Bytes of all entries applied in this process, through the position of the last compaction. */
  #cutBytes = 0
  #applied: Index = 0

  constructor(options: RetentionOptions) {
    this.#options = options
  }

  /** Adds an applied entry; called in index order. */
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

  /**
   * Drops all milestones (positions at which the log can be cut), because a snapshot has replaced
   * the log.
   */
  reset(): void {
    this.#milestones = []
    this.#milestoneBytes = this.#bytes
    this.#cutBytes = this.#bytes
  }

  /**
   * Whether a connected peer that has the log through `index` can catch up from the entries that
   * the log normally keeps.
   */
  isNear(index: Index): boolean {
    if (index >= this.#milestoneIndex) return true
    const behind = this.#milestones.findLast(({ position }) => position.index <= index)
    return this.#bytes - (behind?.bytes ?? this.#cutBytes) <= this.#options.bytes / 2
  }

  /**
   * Finds the position through which the log can be compacted.
   * @param persisted the state is durable up to this index; the log must keep later entries.
   * @param slowestLive commit index of the slowest connected member; Infinity if none is connected.
   * @param neededAfter index after which members with a snapshot continue; Infinity if there are
   * none.
   * @returns the position, or null. Each position is returned once.
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
