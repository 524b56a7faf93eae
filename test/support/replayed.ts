import { apply } from '../../src/fsm/apply.ts'
import { loadState } from '../../src/fsm/load.ts'
import { State } from '../../src/fsm/state.ts'
import type { Entry } from '../../src/raft/types.ts'
import { MemoryStateStore } from '../../src/store/memory-state-store.ts'

export interface StateDigests {
  readonly state: string
  readonly entities: string
}

/** So that a batch holds several entries, and a record is written in more than one batch. */
const ENTRIES_A_BATCH = 7

/**
 * Applies the log anew, and loads what a store was given of that batch by batch.
 * @throws when either state is another one than was made of it at first.
 */
export async function expectSameState(
  entries: readonly Entry[],
  made: StateDigests,
): Promise<void> {
  const again = new State()
  const store = new MemoryStateStore()
  for (const [at, entry] of entries.entries()) {
    apply(again, entry)
    if (at % ENTRIES_A_BATCH === 0) await write(store, again)
  }
  await write(store, again)
  differ('applied again', again, made)
  differ('loaded from its records', await loadState(store), made)
}

async function write(store: MemoryStateStore, state: State): Promise<void> {
  const { position, logTimeMs, configuration } = state
  await store.write(state.takeDirty(), {
    position,
    timeMs: logTimeMs,
    configuration: Buffer.from(configuration).toString('base64'),
    digest: state.stateDigest(),
    entitiesDigest: state.entitiesDigest(),
  })
}

function differ(how: string, state: State, made: StateDigests): void {
  const found = { state: state.stateDigest(), entities: state.entitiesDigest() }
  if (found.state === made.state && found.entities === made.entities) return
  throw new Error(
    `the log, ${how}, gives another state: ${JSON.stringify(found)}, not ${JSON.stringify(made)}`,
  )
}
