import { assert } from '../../lib/assert.ts'
import type {
  StateStore,
  StorePosition,
  StoreReceiver,
  StoreRecord,
  StoreSnapshot,
} from '../../ports/state-store.ts'
import type { Index } from '../../raft/types.ts'
import { StoreError } from '../errors.ts'
import {
  assertRecord,
  SNAPSHOT_CHUNK_BYTES_DEFAULT,
  encodeSnapshot,
  SnapshotDecoder,
  type StoreRecordWithValue,
} from './snapshot-stream.ts'

/** Stored state that survives the store object, as a disk survives a process. */
export interface MemoryState {
  records: Map<string, string>
  mark: StorePosition | null
  /** Index of the snapshot that was received last; null if there was none. */
  receivedIndex: Index | null
}

export function createMemoryState(): MemoryState {
  return { records: new Map(), mark: null, receivedIndex: null }
}

/**
 * The state store in memory, for tests, the simulator, and commands that read a backup. A write to
 * the {@link MemoryState} is durable immediately.
 */
export class MemoryStateStore implements StateStore {
  readonly #state: MemoryState
  readonly #chunkBytes: number
  #isClosed = false
  #isReceiving = false
  /** True if a snapshot was taken since the last write; the next write must then copy the map. */
  #isShared = false

  constructor(
    state: MemoryState = createMemoryState(),
    options: { readonly chunkBytes?: number } = {},
  ) {
    this.#state = state
    this.#chunkBytes = options.chunkBytes ?? SNAPSHOT_CHUNK_BYTES_DEFAULT
  }

  mark(): StorePosition | null {
    return this.#state.mark
  }

  cameBySnapshot(): boolean {
    const { mark, receivedIndex } = this.#state
    return mark !== null && mark.position.index === receivedIndex
  }

  async *records(): AsyncGenerator<StoreRecordWithValue> {
    this.#requireOpen()
    yield* sorted(this.#state.records)
  }

  async write(records: readonly StoreRecord[], mark: StorePosition): Promise<void> {
    this.#requireOpen()
    for (const record of records) assertRecord(record)
    if (this.#isShared) this.#state.records = new Map(this.#state.records)
    this.#isShared = false
    for (const { key, value } of records) {
      if (value === null) this.#state.records.delete(key)
      else this.#state.records.set(key, value)
    }
    this.#state.mark = mark
  }

  async snapshot(): Promise<StoreSnapshot> {
    this.#requireOpen()
    const { records, mark } = this.#state
    this.#isShared = true
    if (mark === null) {
      throw new StoreError('MISSING', 'memory', 'the store is empty: there is nothing to send yet.')
    }
    const batches = async function* (): AsyncGenerator<StoreRecordWithValue[]> {
      yield sorted(records)
    }
    return {
      mark,
      chunks: (onKey) => encodeSnapshot(mark, batches(), this.#chunkBytes, onKey),
      close: async () => {},
    }
  }

  async receive(): Promise<StoreReceiver> {
    this.#requireOpen()
    assert(!this.#isReceiving, 'one snapshot is received at a time')
    this.#isReceiving = true
    return new MemoryReceiver(this.#state, () => {
      this.#isReceiving = false
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new StoreError('CLOSED', 'memory', 'the store was closed.')
  }
}

/**
 * Sorts records by ascending UTF-8 bytes of the key, like LevelDB. UTF-16 order differs for
 * characters beyond the basic plane.
 */
function sorted(records: ReadonlyMap<string, string>): StoreRecordWithValue[] {
  return [...records]
    .map(([key, value]) => ({ bytes: Buffer.from(key, 'utf8'), record: { key, value } }))
    .sort((a, b) => a.bytes.compare(b.bytes))
    .map(({ record }) => record)
}

class MemoryReceiver implements StoreReceiver {
  readonly #target: MemoryState
  readonly #ended: () => void
  readonly #decoder = new SnapshotDecoder()
  readonly #records = new Map<string, string>()
  #mark: StorePosition | null = null
  #state: 'receiving' | 'failed' | 'finished' | 'over' = 'receiving'

  constructor(target: MemoryState, ended: () => void) {
    this.#target = target
    this.#ended = ended
  }

  async write(chunk: Uint8Array): Promise<void> {
    assert(this.#state === 'receiving', `a snapshot that is ${this.#state} takes no more`)
    this.#state = 'failed'
    for (const { key, value } of this.#decoder.push(chunk.slice())) this.#records.set(key, value)
    this.#state = 'receiving'
  }

  async finish(): Promise<StorePosition> {
    assert(this.#state === 'receiving', `a snapshot that is ${this.#state} takes no more`)
    this.#state = 'failed'
    this.#mark = this.#decoder.finish()
    this.#state = 'finished'
    return this.#mark
  }

  async swap(): Promise<void> {
    assert(this.#state === 'finished', 'only a finished snapshot is swapped in')
    this.#state = 'over'
    this.#target.records = this.#records
    this.#target.mark = this.#mark
    this.#target.receivedIndex = this.#mark?.position.index ?? null
    this.#ended()
  }

  async abandon(): Promise<void> {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#ended()
  }
}
