import { systemClock } from '../../lib/clock.ts'
import { StateDamagedError } from '../../fsm/records/load.ts'
import { StateMachine } from '../../fsm/state-machine.ts'
import { moveStateAside } from '../../store/state/move-state-aside.ts'
import { isCorruptStoreError } from '../../store/errors.ts'
import { LevelStateStore } from '../../store/state/level-state-store.ts'

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
 * @throws {StoreError} and {StateDamaged} if the state is damaged and there are no such peers.
 */
export async function openState(
  dir: string,
  freeBytesMin: number,
  hasOtherVoters: boolean,
): Promise<OpenedState> {
  try {
    return { machine: await openMachine(dir, freeBytesMin), dropped: null }
  } catch (error) {
    const finding = findingOf(error)
    if (finding === null || !hasOtherVoters) throw error
    const aside = moveStateAside(dir, freeBytesMin)
    return { machine: await openMachine(dir, freeBytesMin), dropped: { finding, aside } }
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
