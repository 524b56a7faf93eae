import { setImmediate as turn } from 'node:timers/promises'
import { applyLogEntry } from '../../../src/fsm/apply-log-entry.ts'
import { StateMachine } from '../../../src/fsm/state-machine.ts'
import { assert } from '../../../src/lib/assert.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { encodeEntries } from '../../../src/raft/entry-codec.ts'
import { MemoryStateStore } from '../../../src/store/state/memory-state-store.ts'
import { LogWriter, service } from '../../fsm/support/log.ts'
import { ClusterNodeStage } from '../cluster-node-stage.ts'
import { ClusterState } from '../../../src/fsm/access/cluster-state.ts'

const SERVICES = 3000

/** A store that, like one on a disk, lets other events run while it is read. */
class SlowStore extends MemoryStateStore {
  override async *records(): ReturnType<MemoryStateStore['records']> {
    for await (const record of super.records()) {
      await turn()
      yield record
    }
  }
}

/** The state machine is in the middle of a long batch when a snapshot must replace the state. */
export async function scenario(): Promise<void> {
  const source = await StateMachine.open({ store: new MemoryStateStore(), clock: systemClock })
  const log = new LogWriter((entry) => source.apply(entry))
  log.form()
  for (let at = 0; at < SERVICES; at += 1) log.create('service', `s${at}`, service(`service ${at}`))
  const snapshot = await source.snapshot()
  log.create('service', 'last', service('last'))

  const stage = await ClusterNodeStage.set(new SlowStore())
  const id = 1
  stage.say({ type: 'receiveBegin', id, from: 'n2' })
  for await (const data of snapshot.chunks()) stage.say({ type: 'receiveChunk', id, data })
  stage.say({ type: 'receiveFinish', id })
  await stage.settle()
  const [older, newer] = [log.entries.slice(0, SERVICES), log.entries.slice(SERVICES + 1)]
  stage.say({ type: 'committed', entries: encodeEntries(older) }, { type: 'restore', id })
  await stage.settle(SERVICES * 2)
  stage.say({ type: 'committed', entries: encodeEntries(newer) })
  await stage.settle()

  const [fatal] = stage.fatal
  assert(fatal === undefined, `I16: an install ended the process: ${fatal?.message}`)
  const whole = new ClusterState()
  for (const entry of log.entries) applyLogEntry(whole, entry)
  const { index, state } = stage.machine.digests()
  assert(index === whole.position.index, `I8: applied stands at ${index}`)
  assert(state === whole.stateDigest(), `I5: two states differ at ${index}`)
}
