import type { StateStore } from '../../ports/state-store.ts'
import { FEATURE_LEVEL, FeatureLevelUnknownError } from '../../ports/feature-level.ts'
import type { State } from './state.ts'

/**
 * The records of a store do not match its digests, or cannot be read: the store is damaged and must
 * not be used.
 */
export class StateDamagedError extends Error {
  override readonly name = 'StateDamagedError'
}

/**
 * Loads the records of a store into an empty state. The state stays empty if the store is new.
 * @throws {StateDamagedError} or {FeatureLevelUnknownError}, and errors from the store.
 */
export async function loadState<S extends State>(store: StateStore, state: S): Promise<S> {
  const mark = store.mark()
  if (mark === null) return state
  // The feature level is checked first, because otherwise records of a kind that this version does
  // not know would look like damage.
  if (mark.featureLevel > FEATURE_LEVEL) {
    throw new FeatureLevelUnknownError('the state of this controller', mark.featureLevel)
  }
  state.featureLevel = mark.featureLevel
  for await (const { key, value } of store.records()) readable(() => state.load(key, value))
  readable(() => state.loaded())
  state.position = mark.position
  state.logTimeMs = mark.timeMs
  state.configuration = Uint8Array.from(Buffer.from(mark.configuration, 'base64'))
  if (state.stateDigest() !== mark.digest || state.entitiesDigest() !== mark.entitiesDigest) {
    throw new StateDamagedError(
      `the state store is damaged: its digest at ${mark.position.index} is not met`,
    )
  }
  return state
}

function readable(load: () => void): void {
  try {
    load()
  } catch (error) {
    throw new StateDamagedError(
      `the state store is damaged: a record cannot be read (${String(error)})`,
    )
  }
}
