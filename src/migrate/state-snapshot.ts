import type { State } from '../fsm/records/state.ts'
import { currentStorePosition } from '../fsm/records/write-behind.ts'
import type { StoreSnapshot } from '../ports/state-store.ts'
import {
  assertRecord,
  SNAPSHOT_CHUNK_BYTES_DEFAULT,
  encodeSnapshot,
  type StoreRecordWithValue,
} from '../store/state/snapshot-stream.ts'

/**
 * A snapshot of a state that was built without a log. Each record is encoded when it is read, so
 * that memory does not hold the network twice. The state must not change until the snapshot is
 * closed.
 */
export function createStateSnapshot(state: State): StoreSnapshot {
  const mark = currentStorePosition(state)
  return {
    mark,
    chunks: (onKey) => encodeSnapshot(mark, recordsOf(state), SNAPSHOT_CHUNK_BYTES_DEFAULT, onKey),
    close: async () => {},
  }
}

async function* recordsOf(state: State): AsyncGenerator<readonly StoreRecordWithValue[]> {
  for (const record of state.storedRecords()) {
    assertRecord(record)
    yield [record]
  }
}
