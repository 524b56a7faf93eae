import {
  createMemoryState,
  MemoryStateStore,
  type MemoryState,
} from '../../src/store/state/memory-state-store.ts'
import { stateStoreSuite, type OpenedStore } from './state-store-suite.ts'

const chunkBytes = 4096

function harness(state: MemoryState): OpenedStore {
  const store = new MemoryStateStore(state, { chunkBytes })
  return {
    store,
    reopen: async () => {
      await store.close()
      return harness(state)
    },
  }
}

stateStoreSuite('memory store', chunkBytes, async () => harness(createMemoryState()))
