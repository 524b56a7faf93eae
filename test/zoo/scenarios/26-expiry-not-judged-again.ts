import { assert } from '../../../src/lib/assert.ts'
import { formedState } from '../../fsm/support/log.ts'

/**
 * A leader finds a session idle, and its command to end it is delayed. Another leader logs
 * meanwhile that the session was used. Then the first one continues.
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
