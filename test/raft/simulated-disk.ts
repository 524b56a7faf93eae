import { assert } from '../../src/lib/assert.ts'
import type {
  Disk,
  DiskWrite,
  Entry,
  HardState,
  Index,
  Position,
  RestoredLog,
  Term,
} from '../../src/raft/types.ts'

type Operation =
  | { readonly type: 'write'; readonly write: DiskWrite }
  | { readonly type: 'reset'; readonly position: Position; readonly token: number }
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'settle'; readonly owed: Position | null }

/** State that survives a crash. */
export class Platter {
  hardState: HardState = { term: 0, votedFor: null }
  base: Position = { term: 0, index: 0 }
  entries: Entry[] = []
  commit: Index = 0
  boot = 0
  owed: Position | null = null

  get lastIndex(): Index {
    return this.base.index + this.entries.length
  }

  termAt(index: Index): Term | null {
    if (index === this.base.index) return this.base.term
    return this.entries[index - this.base.index - 1]?.term ?? null
  }

  /** Whether the disk contains that entry, or has compacted it. */
  holds(index: Index, term: Term): boolean {
    return index <= this.base.index || this.termAt(index) === term
  }

  /**
   * Restarts the log after `state` with `keptCount` of the entries that followed; the rest becomes
   * its missing tail.
   * @param isEndKnown whether the end of the lost log is known.
   */
  damage(state: Position, keptCount: number, isEndKnown: boolean): void {
    const last = { term: this.termAt(this.lastIndex) ?? 0, index: this.lastIndex }
    const unknown = { term: this.hardState.term, index: Number.MAX_SAFE_INTEGER }
    this.owed = isEndKnown ? last : unknown
    const from = state.index - this.base.index
    this.entries = this.entries.slice(from, from + keptCount)
    this.base = state
    this.commit = state.index
  }

  setHardState(hardState: HardState): void {
    const { term, votedFor } = this.hardState
    assert(hardState.term >= term, 'I8: the term on disk decreased')
    const isOtherVote = hardState.term === term && votedFor !== null
    assert(
      !isOtherVote || hardState.votedFor === votedFor,
      'I8: the vote on disk changed within a term',
    )
    this.hardState = hardState
  }

  append(entries: readonly Entry[]): void {
    for (const entry of entries) {
      const at = entry.index - this.base.index - 1
      assert(at >= 0 && at <= this.entries.length, `a hole before entry ${entry.index} on disk`)
      this.entries.length = at
      this.entries.push(entry)
    }
  }

  restored(): RestoredLog {
    this.boot += 1
    const { hardState, base, entries, commit, boot, owed } = this
    return { hardState, base, entries: [...entries], commit, boot, owed }
  }
}

export interface DiskTiming {
  /** Duration of the next sync, ms. */
  syncMs(): number
  after(delayMs: number, task: () => void): void
}

/**
 * A disk that writes in order and syncs late. At a crash it keeps a random prefix of the pending
 * writes.
 */
export class SimulatedDisk implements Disk {
  readonly platter: Platter
  onDurable: (token: number) => void = () => undefined
  onFailed: (error: Error) => void = () => undefined
  readonly #timing: DiskTiming
  #queue: Operation[] = []
  #isSyncing = false
  #isDead = false

  constructor(platter: Platter, timing: DiskTiming) {
    this.platter = platter
    this.#timing = timing
  }

  write(write: DiskWrite): void {
    this.#push({ type: 'write', write })
  }

  compact(position: Position): void {
    this.#push({ type: 'compact', position })
  }

  reset(position: Position, token: number): void {
    this.#push({ type: 'reset', position, token })
  }

  settle(owed: Position | null): void {
    this.#push({ type: 'settle', owed })
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  /**
   * @param torn share of the first pending write that reached the disk, 0..1; the rest of the write
   * is lost.
   */
  crash(torn: number): void {
    this.#isDead = true
    const first = this.#queue[0]
    if (first?.type !== 'write' || torn === 0) return
    const { hardState, entries } = first.write
    if (hardState !== null) this.platter.setHardState(hardState)
    this.platter.append(entries.slice(0, Math.floor(entries.length * torn)))
  }

  #push(operation: Operation): void {
    this.#queue.push(operation)
    this.#sync()
  }

  /** One sync covers all writes that are queued when it begins. */
  #sync(): void {
    if (this.#isSyncing || this.#queue.length === 0) return
    this.#isSyncing = true
    const count = this.#queue.length
    this.#timing.after(this.#timing.syncMs(), () => {
      if (this.#isDead) return
      this.#isSyncing = false
      const done = this.#queue.splice(0, count)
      for (const operation of done) this.#carryOut(operation)
      this.#sync()
    })
  }

  #carryOut(operation: Operation): void {
    const { platter } = this
    switch (operation.type) {
      case 'write': {
        const { hardState, entries, commit, token } = operation.write
        if (hardState !== null) platter.setHardState(hardState)
        platter.append(entries)
        platter.commit = Math.max(platter.commit, commit)
        this.onDurable(token)
        return
      }
      case 'reset':
        platter.base = operation.position
        platter.entries = []
        platter.commit = operation.position.index
        this.onDurable(operation.token)
        return
      case 'settle':
        platter.owed = operation.owed
        return
      case 'compact': {
        const { index, term } = operation.position
        assert(platter.termAt(index) === term, 'only what the disk holds is compacted')
        platter.entries = platter.entries.slice(index - platter.base.index)
        platter.base = operation.position
        return
      }
    }
  }
}
