import { assert } from '../../src/lib/assert.ts'
import type {
  Disk,
  DiskWrite,
  Entry,
  HardState,
  Position,
  RestoredLog,
} from '../../src/raft/types.ts'

type Operation =
  | { readonly type: 'write'; readonly write: DiskWrite }
  | { readonly type: 'compact'; readonly position: Position }
  | { readonly type: 'reset'; readonly position: Position; readonly token: number }
  | { readonly type: 'settle'; readonly owed: Position | null }

/** Data that a {@link MemoryDisk} keeps across a crash, for the next {@link MemoryDisk}. */
interface Platter {
  hardState: HardState
  base: Position
  entries: Entry[]
  commit: number
  boot: number
  owed: Position | null
}

export interface MemoryDiskOptions {
  /** First entries of a formed log; they count as committed. */
  readonly entries?: readonly Entry[]
  /**
   * `automatic`: the writes of each turn are synced at its end. `manual`: writes are synced only by
   * `sync`, `syncNext` and `close`, for simulation.
   */
  readonly sync?: 'automatic' | 'manual'
}

/**
 * The log in memory, for tests and the simulator: `crash` discards unsynced data, like a power cut.
 * It uses no clock and no randomness: with `manual` it acts only on request.
 */
export class MemoryDisk implements Disk {
  onDurable: (token: number) => void = () => {}
  onFailed: (error: Error) => void = () => {}

  readonly #platter: Platter
  readonly #isAutomatic: boolean
  #pending: Operation[] = []
  #isScheduled = false
  #isEnded = false

  private constructor(platter: Platter, isAutomatic: boolean) {
    this.#platter = platter
    this.#isAutomatic = isAutomatic
    platter.boot += 1
  }

  /** A new log, opened for the first time. */
  static form(options: MemoryDiskOptions = {}): { disk: MemoryDisk; restored: RestoredLog } {
    const entries = [...(options.entries ?? [])]
    const platter: Platter = {
      hardState: { term: entries.at(-1)?.term ?? 0, votedFor: null },
      base: { term: 0, index: 0 },
      entries,
      commit: entries.length,
      boot: 0,
      owed: null,
    }
    const disk = new MemoryDisk(platter, options.sync !== 'manual')
    return { disk, restored: disk.#restored() }
  }

  /** Unsynced operations, oldest first. */
  get pendingCount(): number {
    return this.#pending.length
  }

  write(write: DiskWrite): void {
    this.#add({ type: 'write', write })
  }

  compact(position: Position): void {
    this.#add({ type: 'compact', position })
  }

  reset(position: Position, token: number): void {
    this.#add({ type: 'reset', position, token })
  }

  settle(owed: Position | null): void {
    this.#add({ type: 'settle', owed })
  }

  /** Makes the oldest operation durable and reports it. @returns false when no operation waits. */
  syncNext(): boolean {
    const operation = this.#pending.shift()
    if (operation === undefined || this.#isEnded) return false
    const token = this.#carryOut(operation)
    if (token !== null) this.onDurable(token)
    return true
  }

  /** Completes all waiting writes; a write that a report causes waits for the next call. */
  sync(): void {
    for (let count = this.#pending.length; count > 0; count -= 1) this.syncNext()
  }

  /** After this call every write is lost, as after an fsync error. */
  fail(error: Error): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#pending = []
    this.onFailed(error)
  }

  /** Discards unsynced data; after this call the disk reports nothing. */
  crash(): void {
    this.#isEnded = true
    this.#pending = []
  }

  /** Opens a disk again that has crashed, failed or been closed. */
  reopen(): { disk: MemoryDisk; restored: RestoredLog } {
    assert(this.#isEnded, 'a running disk is not opened twice')
    const disk = new MemoryDisk(this.#platter, this.#isAutomatic)
    return { disk, restored: disk.#restored() }
  }

  close(): Promise<void> {
    this.sync()
    this.#isEnded = true
    return Promise.resolve()
  }

  #add(operation: Operation): void {
    if (this.#isEnded) return
    this.#pending.push(operation)
    if (!this.#isAutomatic || this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.sync()
    })
  }

  #carryOut(operation: Operation): number | null {
    const platter = this.#platter
    switch (operation.type) {
      case 'write':
        this.#carryOutWrite(operation.write)
        return operation.write.token
      case 'compact': {
        const count = operation.position.index - platter.base.index
        assert(count <= platter.entries.length, 'compaction stays within the log')
        platter.commit = Math.max(platter.commit, operation.position.index)
        if (count <= 0) return null
        platter.entries = platter.entries.slice(count)
        platter.base = operation.position
        return null
      }
      case 'reset':
        platter.base = operation.position
        platter.entries = []
        platter.commit = operation.position.index
        return operation.token
      case 'settle':
        platter.owed = operation.owed
        return null
    }
  }

  #carryOutWrite({ hardState, entries, commit }: DiskWrite): void {
    const platter = this.#platter
    if (hardState !== null) {
      assert(hardState.term >= platter.hardState.term, 'the term never runs back')
      platter.hardState = hardState
    }
    const first = entries[0]
    if (first !== undefined) {
      const kept = first.index - platter.base.index - 1
      assert(first.index > platter.commit, 'a committed entry is never replaced')
      assert(kept <= platter.entries.length, 'entries leave no gap')
      platter.entries.length = kept
      for (const entry of entries) {
        const previous = platter.entries.at(-1) ?? platter.base
        assert(entry.index === previous.index + 1, 'entries are consecutive')
        assert(entry.term >= previous.term, 'terms do not run back along the log')
        platter.entries.push(entry)
      }
    }
    const lastIndex = platter.base.index + platter.entries.length
    platter.commit = Math.max(platter.commit, Math.min(commit, lastIndex))
  }

  #restored(): RestoredLog {
    const { hardState, base, entries, commit, boot, owed } = this.#platter
    return { hardState, base, entries: [...entries], commit, boot, owed }
  }
}
