import { setTimeout as wait } from 'node:timers/promises'
import { apply } from '../../../src/fsm/apply.ts'
import { State } from '../../../src/fsm/state.ts'
import { assert } from '../../../src/lib/assert.ts'
import { formedState, service } from '../../fsm/support/log.ts'

/** Two controllers apply the same entries, one a little later than the other. */
export async function scenario(): Promise<void> {
  const { state, log } = formedState()
  log.create('service', 's1', service('one'))
  log.logIn('s1')
  await wait(20)
  const other = new State()
  for (const entry of log.entries) apply(other, entry)
  assert(
    other.stateDigest() === state.stateDigest(),
    `I5: two states differ at index ${state.position.index}`,
  )
}
