import { assert } from '../../../src/lib/assert.ts'
import { formedState } from '../../fsm/support/log.ts'

/**
 * A leader finds that a session is idle, and its command to end the session is delayed. Meanwhile
 * another leader logs that the session was used. Then the delayed command of the first leader
 * arrives.
 */
export function scenario(): void {
  const { state, log } = formedState()
  log.logIn('s1')
  const seenMs = log.timeMs
  log.timeMs += 60_000
  log.touch('s1', log.timeMs)
  log.expire('s1', seenMs)
  assert(
    state.get('apiSession', 's1') !== undefined,
    'I14: what a deposed leader had judged ended a session that was used since',
  )
}
