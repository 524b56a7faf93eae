import type {
  StateStore,
  StorePosition,
  StoreReceiver,
  StoreRecord,
  StoreSnapshot,
} from '../../src/ports/state-store.ts'
import { type MemoryState, MemoryStateStore } from '../../src/store/state/memory-state-store.ts'

export interface StoreTiming {
  /** Duration of the next write, ms. */
  writeMs(): number
  /** Duration of the next step of a snapshot, ms. */
  stepMs(): number
}

async function pause(delayMs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, delayMs))
}

/**
 * The state store on a slow disk: after a crash during a write, the store contains either none or
 * all of the batch.
 */
export class SlowStore implements StateStore {
  readonly #inner: MemoryStateStore
  readonly #timing: StoreTiming

  constructor(state: MemoryState, timing: StoreTiming, chunkBytes: number) {
    this.#inner = new MemoryStateStore(state, { chunkBytes })
    this.#timing = timing
  }

  mark(): StorePosition | null {
    return this.#inner.mark()
  }

  cameBySnapshot(): boolean {
    return this.#inner.cameBySnapshot()
  }

  records(): AsyncIterable<StoreRecord & { readonly value: string }> {
    return this.#inner.records()
  }

  async write(records: readonly StoreRecord[], mark: StorePosition): Promise<void> {
    await pause(this.#timing.writeMs())
    await this.#inner.write(records, mark)
  }

  async snapshot(): Promise<StoreSnapshot> {
    await pause(this.#timing.stepMs())
    const snapshot = await this.#inner.snapshot()
    const { mark } = snapshot
    const timing = this.#timing
    const chunks = async function* (): AsyncGenerator<Uint8Array> {
      for await (const chunk of snapshot.chunks()) {
        await pause(timing.stepMs())
        yield chunk
      }
    }
    return { mark, chunks, close: async () => await snapshot.close() }
  }

  async receive(): Promise<StoreReceiver> {
    const receiver = await this.#inner.receive()
    const timing = this.#timing
    const slowly =
      <In extends unknown[], Out>(step: (...given: In) => Promise<Out>) =>
      async (...given: In): Promise<Out> => {
        await pause(timing.stepMs())
        return await step(...given)
      }
    return {
      write: slowly(async (chunk: Uint8Array) => await receiver.write(chunk)),
      finish: slowly(async () => await receiver.finish()),
      swap: slowly(async () => await receiver.swap()),
      abandon: async () => await receiver.abandon(),
    }
  }

  async close(): Promise<void> {
    await this.#inner.close()
  }
}
