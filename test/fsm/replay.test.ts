import { expect, test } from 'vitest'
import { applyLogEntry } from '../../src/fsm/apply-log-entry.ts'
import { appliedLogs } from '../support/applied-logs.ts'
import { Replay } from '../support/replayed.ts'
import { LogWriter, formedState, service } from './support/log.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// Tests the check that replays the log of every test (test/support/after-each.ts), and that this
// check can fail.

test('replaying a log detects a state that does not result from this log', async () => {
  const { state, log } = formedState()
  log.create('service', 's1', service('one'))
  const made = { state: state.stateDigest(), entities: state.entitiesDigest() }
  await new Replay().judge(log.entries, made)
  const shorter = log.entries.slice(0, -1)
  await expect(new Replay().judge(shorter, made)).rejects.toThrow(
    'applied again, gives another state',
  )
})

test('replaying a log detects that the new state depends on more than the previous state and the log entry', async () => {
  const state = new ClusterState()
  let calls = 0
  const log = new LogWriter(
    (entry) => {
      calls += 1
      return applyLogEntry(state, calls === 2 ? { ...entry, timeMs: entry.timeMs + 1 } : entry)
    },
    () => ({ state: state.stateDigest(), entities: state.entitiesDigest() }),
  )
  log.form()
  log.create('service', 's1', service('one'))
  await expect(appliedLogs.judge()).rejects.toThrow('gives another state')
})
