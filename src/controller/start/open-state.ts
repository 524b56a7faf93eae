import { systemClock } from '../../lib/clock.ts'
import { StateDamagedError } from '../../fsm/records/load.ts'
import { StateMachine } from '../../fsm/state-machine.ts'
import { moveStateAside } from '../../store/state/move-state-aside.ts'
import { corruptError, isCorruptStoreError } from '../../store/errors.ts'
import { OpeningFile } from '../../store/folder/opening-file.ts'
import { LevelStateStore, STATE_FOLDER_NAME } from '../../store/state/level-state-store.ts'
import { findStateAbort } from './find-state-abort.ts'

interface OpenedState {
  readonly machine: StateMachine
  /**
   * Damage of the previous state, and the path to which it was moved; null if no state was
   * replaced.
   */
  readonly dropped: { readonly finding: string; readonly aside: string | null } | null
}

/**
 * Opens the state of a data folder whose lock the caller holds. Replaces a damaged state with an
 * empty one. The log fills the empty state, or if the log starts later, the peers do.
 * @param hasOtherVoters whether there are peers that can fill the empty state.
 * @throws {StoreError} or {StateDamagedError}, for example if the state is damaged and there are no
 * such peers.
 */
export async function openState(
  dir: string,
  freeBytesMin: number,
  hasOtherVoters: boolean,
): Promise<OpenedState> {
  const opening = new OpeningFile(dir)
  try {
    if (opening.isSet()) await requireNoAbort(dir)
    return { machine: await openMarked(opening, dir, freeBytesMin), dropped: null }
  } catch (error) {
    const finding = findingOf(error)
    if (finding === null || !hasOtherVoters) throw error
    const aside = moveStateAside(dir, freeBytesMin)
    const machine = await openMarked(opening, dir, freeBytesMin)
    return { machine, dropped: { finding, aside } }
  }
}

/**
 * Tests a state that an earlier process did not finish opening. The service manager restarts a
 * controller that LevelDB aborted, which would be aborted each time. A process that was killed for
 * another reason leaves the same file, so only an abort that happens again counts as damage.
 * @throws {StoreError} CORRUPT; the file remains, so that the next start tests the state again.
 */
async function requireNoAbort(dir: string): Promise<void> {
  const assertion = await findStateAbort(dir)
  if (assertion === null) return
  throw corruptError(`${dir}/${STATE_FOLDER_NAME}`, `LevelDB aborts the process: ${assertion}`)
}

/** Opens the state, and marks the data folder in the meantime. */
async function openMarked(
  opening: OpeningFile,
  dir: string,
  freeBytesMin: number,
): Promise<StateMachine> {
  opening.set()
  try {
    return await openMachine(dir, freeBytesMin)
  } finally {
    opening.clear()
  }
}

function findingOf(error: unknown): string | null {
  if (isCorruptStoreError(error)) return error.finding
  return error instanceof StateDamagedError ? error.message : null
}

async function openMachine(dir: string, freeBytesMin: number): Promise<StateMachine> {
  const store = await LevelStateStore.open(dir, { freeBytesMin })
  // If opening fails, the store is closed here. After a success, the state machine closes its
  // store.
  return await StateMachine.open({ store, clock: systemClock }).catch(async (error: unknown) => {
    await store.close()
    throw error
  })
}
