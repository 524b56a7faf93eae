import { loadState } from '../../../src/fsm/load.ts'
import { StateMachine } from '../../../src/fsm/machine.ts'
import { assert } from '../../../src/lib/assert.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { MemoryStateStore } from '../../../src/store/memory-state-store.ts'
import type { MemoryState } from '../../../src/store/memory-state-store.ts'
import { LogWriter, service } from '../../fsm/support/log.ts'

/** The process dies after any one write to the state store: a start finds the state of one index, whole. */
export async function scenario(): Promise<void> {
  const state: MemoryState = { records: new Map(), mark: null }
  const store = new MemoryStateStore(state)
  const left: MemoryState[] = []
  const write = store.write.bind(store)
  store.write = async (records, mark) => {
    await write(records, mark)
    left.push({ records: new Map(state.records), mark: state.mark })
  }
  const machine = await StateMachine.open({ store, clock: systemClock })
  const log = new LogWriter((entry) => machine.apply(entry))
  log.form()
  for (const name of ['one', 'two', 'three']) {
    log.create('service', name, service(name))
    await (await machine.snapshot()).close()
  }
  await machine.close()
  assert(left.length > 0, 'something was written')
  for (const found of left) await openAfter(found)
}

async function openAfter(found: MemoryState): Promise<void> {
  try {
    await loadState(new MemoryStateStore(found))
  } catch (error) {
    throw new Error(`I16: no start from what a crash left: ${String(error)}`, { cause: error })
  }
}
