import { systemClock } from '../../lib/clock.ts'
import { StateDamaged } from '../../fsm/records/load.ts'
import { StateMachine } from '../../fsm/machine.ts'
import { moveStateAside } from '../../store/state/damaged-state.ts'
import { isCorrupt } from '../../store/errors.ts'
import { LevelStateStore } from '../../store/state/level-state-store.ts'

export interface OpenedState {
  readonly machine: StateMachine
  /** Fault of the state that stood there, and where it is now; null: none. */
  readonly dropped: { readonly finding: string; readonly aside: string | null } | null
}

/**
 * Opens the state of a data folder whose lock the caller holds. A damaged one is given up for an
 * empty one, which the log fills or, where that begins later, the peers.
 * @param hasOtherVoters whether there are any who could.
 * @throws {StoreError} And {StateDamaged} where nobody could.
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
  if (isCorrupt(error)) return error.finding
  return error instanceof StateDamaged ? error.message : null
}

async function openMachine(dir: string, freeBytesMin: number): Promise<StateMachine> {
  const store = await LevelStateStore.open(dir, { freeBytesMin })
  // The machine closes its store; until it is there, nobody else does.
  return await StateMachine.open({ store, clock: systemClock }).catch(async (error: unknown) => {
    await store.close()
    throw error
  })
}
