import type { Position } from '../../raft/types.ts'
import type { StateStore, StorePosition } from '../../ports/state-store.ts'
import type { State } from './state.ts'
import type { ScheduleTimer } from './index-waiters.ts'

export const writeBehindDefaults = {
  /**
   * Maximum time from the first unwritten change to the start of a write to the store, while no
   * other write is in progress.
   */
  flushPeriodMs: 200,
  /**
   * When the unwritten changes have this many characters, a write to the store starts immediately.
   */
  flushBytes: 1024 * 1024,
  dirtyCharactersMax: 2 * 1024 * 1024,
} as const

export interface WriteBehindLimits {
  readonly flushPeriodMs: number
  readonly flushBytes: number
  /**
   * Maximum characters of changes that the store has not received yet; above this limit, the
   * controller waits before it applies the next entry.
   */
  readonly dirtyCharactersMax: number
}

/** The position of the state, as the store saves it with the records. */
export function currentStorePosition(state: State): StorePosition {
  return {
    position: state.position,
    timeMs: state.logTimeMs,
    configuration: Buffer.from(state.configuration).toString('base64'),
    featureLevel: state.featureLevel,
    digest: state.stateDigest(),
    entitiesDigest: state.entitiesDigest(),
  }
}

/**
 * Writes applied changes to the store: soon after the first change, or when many changes have
 * accumulated, with one batch in progress at a time. The log contains all changes that are not
 * written yet.
 */
export class WriteBehind {
  onPersisted: (position: Position) => void = () => undefined
  onFailed: (error: Error) => void = () => undefined
  readonly #store: StateStore
  readonly #schedule: ScheduleTimer
  readonly #limits: WriteBehindLimits
  #persisted: Position
  #inFlight: Promise<void> | null = null
  #cancelTimer: (() => void) | null = null
  #isStopped = false

  constructor(
    store: StateStore,
    schedule: ScheduleTimer,
    limits: WriteBehindLimits,
    persisted: Position,
  ) {
    this.#store = store
    this.#schedule = schedule
    this.#limits = limits
    this.#persisted = persisted
  }

  get persisted(): Position {
    return this.#persisted
  }

  /** Schedules a write. Must be called after each applied entry. */
  noteApplied(state: State): void {
    if (this.#isStopped || this.#inFlight !== null) return
    if (state.dirtyCharacters >= this.#limits.flushBytes) {
      this.#begin(state)
      return
    }
    this.#cancelTimer ??= this.#schedule(this.#limits.flushPeriodMs, () => {
      this.#cancelTimer = null
      if (!this.#isStopped && this.#inFlight === null) this.#begin(state)
    })
  }

  #begin(state: State): void {
    this.#cancelTimer?.()
    this.#cancelTimer = null
    this.#inFlight = this.#write(state).finally(() => {
      this.#inFlight = null
      if (state.position.index > this.#persisted.index) this.noteApplied(state)
    })
  }

  /** Never rejects. If the store fails, calls `onFailed` once and writes nothing more. */
  async #write(state: State): Promise<void> {
    const mark = currentStorePosition(state)
    try {
      // @guard 33-applied-index-apart-from-the-data
      await this.#store.write(state.takeDirty(), mark)
    } catch (error) {
      this.#isStopped = true
      this.onFailed(error instanceof Error ? error : new Error(String(error)))
      return
    }
    this.#persisted = mark.position
    this.onPersisted(mark.position)
  }

  /** Resolves when everything applied so far is in the store, or when the store has failed. */
  async flush(state: State): Promise<void> {
    const target = state.position.index
    while (!this.#isStopped && this.#persisted.index < target) {
      if (this.#inFlight === null) this.#begin(state)
      await this.#inFlight
    }
  }

  /** Starts no further writes; resolves when the write in progress has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelTimer?.()
    this.#cancelTimer = null
    await this.#inFlight
  }
}
