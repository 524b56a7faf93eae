import { applyLogEntry } from '../../src/fsm/apply-log-entry.ts'
import { loadState } from '../../src/fsm/records/load.ts'
import type { Entry } from '../../src/raft/types.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

export interface StateDigests {
  readonly state: string
  readonly entities: string
}

/**
 * Number of log entries per batch of writes: so small that a record is written in more than one
 * batch, and larger than one so that a batch contains several entries.
 */
const ENTRIES_A_BATCH = 7

/**
 * Applies a log a second time, to a second state, and repeats the writes to a store batch by batch.
 */
export class Replay {
  readonly #state = new ClusterState()
  readonly #store = new MemoryStateStore()
  #loadedAt = 0

  /**
   * Applies the entries of the log since the last call. If this call is the last one, or the log
   * is at least twice as long as at the last load, the state is also loaded from the store.
   * @throws if either state differs from the first state of the log.
   */
  async judge(entries: readonly Entry[], made: StateDigests, isLast = false): Promise<void> {
    for (const entry of entries.slice(this.#state.position.index)) {
      applyLogEntry(this.#state, entry)
      if (entry.index % ENTRIES_A_BATCH === 0) await this.#write()
    }
    differ('applied again', this.#state, made)
    if (entries.length < 2 * this.#loadedAt && !isLast) return
    this.#loadedAt = entries.length
    await this.#write()
    differ('loaded from its records', await loadState(this.#store, new ClusterState()), made)
  }

  async #write(): Promise<void> {
    const { position, logTimeMs, configuration } = this.#state
    await this.#store.write(this.#state.takeDirty(), {
      position,
      timeMs: logTimeMs,
      configuration: Buffer.from(configuration).toString('base64'),
      featureLevel: this.#state.featureLevel,
      digest: this.#state.stateDigest(),
      entitiesDigest: this.#state.entitiesDigest(),
    })
  }
}

function differ(how: string, state: ClusterState, made: StateDigests): void {
  const found = { state: state.stateDigest(), entities: state.entitiesDigest() }
  if (found.state === made.state && found.entities === made.entities) return
  throw new Error(
    `the log, ${how}, gives another state: ${JSON.stringify(found)}, not ${JSON.stringify(made)}`,
  )
}
