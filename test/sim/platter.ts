import { assert } from '../../src/lib/assert.ts'
import { isLogUpToDate } from '../../src/raft/log.ts'
import type {
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

/**
 * Model of the promises of one disk's log. Runs compare the real log with it. Only writes that were
 * reported durable count; pending ones may or may not survive a crash.
 */
export class Platter {
  hardState: HardState = { term: 0, votedFor: null }
  base: Position = { term: 0, index: 0 }
  entries: Entry[] = []
  boot = 0
  /** The disk was damaged: the log may lack promised entries, but must then report that. */
  isDamaged = false
  /** Whether one of the two meta slots was damaged. */
  isSlotDamaged = false
  /** The missing tail that the disk reported. */
  owed: Position | null = null
  #pending: Operation[] = []

  /** Index of the last entry handed over, durable or not. */
  get writtenIndex(): Index {
    for (let at = this.#pending.length - 1; at >= 0; at -= 1) {
      const operation = this.#pending[at]
      if (operation?.type === 'reset') return operation.position.index
      const last = operation?.type === 'write' ? operation.write.entries.at(-1) : undefined
      if (last !== undefined) return last.index
    }
    return this.lastIndex
  }

  get lastIndex(): Index {
    return this.base.index + this.entries.length
  }

  termAt(index: Index): Term | null {
    if (index === this.base.index) return this.base.term
    return this.entries[index - this.base.index - 1]?.term ?? null
  }

  /**
   * Whether the disk contains that entry, or has compacted it. A node whose missing tail includes
   * an entry votes only for candidates that have it; for an election this is equivalent to having
   * the entry itself.
   */
  holds(index: Index, term: Term): boolean {
    if (index <= this.base.index || this.termAt(index) === term) return true
    return this.owed !== null && isLogUpToDate(this.owed, { index, term })
  }

  note(operation: Operation): void {
    this.#pending.push(operation)
  }

  /** Records that every write up to and including `token` is durable. */
  durable(token: number): void {
    for (;;) {
      const [next] = this.#pending
      if (next === undefined) return
      if (next.type === 'write' && next.write.token > token) return
      if (next.type === 'reset' && next.token > token) return
      this.#pending.shift()
      this.#carryOut(next)
    }
  }

  /**
   * Checks the log that a start has found.
   * @throws when a promise is missing and no pending write may have replaced it.
   */
  restart(id: string, { hardState, base, entries, boot, owed }: RestoredLog): void {
    const isSameTerm = hardState.term === this.hardState.term
    assert(hardState.term >= this.hardState.term, `I8: ${id} lost a term in a crash`)
    assert(
      !isSameTerm ||
        this.hardState.votedFor === null ||
        hardState.votedFor === this.hardState.votedFor,
      `I8: ${id} lost its vote in a crash`,
    )
    assert(boot > this.boot, `I16: ${id} has not counted its start`)
    const found = (index: Index): Term | null =>
      index === base.index ? base.term : (entries[index - base.index - 1]?.term ?? null)
    const kept = Math.min(this.lastIndex, this.#firstReplaced - 1)
    const promised = { index: kept, term: this.termAt(kept) ?? 0 }
    if (this.isDamaged) {
      const last = entries.at(-1) ?? base
      const isCovered =
        isLogUpToDate(last, promised) || (owed !== null && isLogUpToDate(owed, promised))
      assert(isCovered, `I16: ${id} lost ${kept} and has not recorded a missing tail`)
    } else {
      for (let index = Math.max(this.base.index, base.index) + 1; index <= kept; index += 1) {
        assert(
          found(index) === this.termAt(index),
          `I16: ${id} has lost entry ${index}, which was durable`,
        )
      }
      assert(base.index + entries.length >= kept, `I16: ${id} has lost the end of its log`)
    }
    this.owed = owed
    this.#pending = []
    this.hardState = hardState
    this.base = base
    this.entries = [...entries]
    this.boot = boot
  }

  get #firstReplaced(): Index {
    let first = Infinity
    for (const operation of this.#pending) {
      if (operation.type === 'reset') return 0
      if (operation.type === 'write')
        first = Math.min(first, operation.write.entries[0]?.index ?? first)
    }
    return first
  }

  #carryOut(operation: Operation): void {
    switch (operation.type) {
      case 'write': {
        const { hardState, entries } = operation.write
        if (hardState !== null) this.#setHardState(hardState)
        this.#append(entries)
        return
      }
      case 'reset':
        this.base = operation.position
        this.entries = []
        return
      case 'compact': {
        const { index, term } = operation.position
        if (index <= this.base.index) return
        assert(this.termAt(index) === term, 'only what the disk holds is compacted')
        this.entries = this.entries.slice(index - this.base.index)
        this.base = operation.position
      }
    }
  }

  #setHardState(hardState: HardState): void {
    const { term, votedFor } = this.hardState
    assert(hardState.term >= term, 'I8: the term on disk decreased')
    const isOtherVote = hardState.term === term && votedFor !== null
    assert(
      !isOtherVote || hardState.votedFor === votedFor,
      'I8: the vote on disk changed within a term',
    )
    this.hardState = hardState
  }

  #append(entries: readonly Entry[]): void {
    for (const entry of entries) {
      const at = entry.index - this.base.index - 1
      assert(at >= 0 && at <= this.entries.length, `a hole before entry ${entry.index} on disk`)
      this.entries.length = at
      this.entries.push(entry)
    }
  }
}
