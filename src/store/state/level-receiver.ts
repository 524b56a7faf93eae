import { rm } from 'node:fs/promises'
import { assert } from '../../lib/assert.ts'
import type { StorePosition, StoreReceiver } from '../../ports/state-store.ts'
import { toStoreError, StoreError } from '../errors.ts'
import { toLevelError, type LevelDatabase, openDatabase } from './level-database.ts'
import { type StoreRecordWithValue, SnapshotDecoder } from './snapshot-stream.ts'
import {
  type LevelOperation,
  storePositionOperations,
  putWithChecksum,
  RECEIVED_SNAPSHOT_KEY,
  type LevelStoreSettings,
  writeLevelBatch,
} from './level-records.ts'

/**
 * Checks the free space of the store's file system.
 * @throws {StoreError} when it is less than the store must leave free.
 */
export function requireFreeStoreSpace(settings: LevelStoreSettings, folder: string): void {
  const freeBytes = settings.files.freeBytes(folder)
  if (freeBytes >= settings.freeBytesMin) return
  throw new StoreError(
    'NO_SPACE',
    folder,
    `the disk of ${folder} has ${freeBytes} bytes free, less than log.lowSpaceBytes (${settings.freeBytesMin}); free space and start again.`,
  )
}

/** Removes a folder. A failure only costs space, because the next start removes leftovers. */
export async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
}

interface ReceiverOwner {
  swap(database: LevelDatabase, mark: StorePosition): Promise<void>
  /**
   * Called when the receiver has finished: its database replaced the current one or failed to do
   * so, or the transfer was abandoned.
   */
  ended(): void
}

type ReceiverState = 'receiving' | 'busy' | 'failed' | 'finished' | 'swapped' | 'abandoned'

/** Receives a snapshot into a new database folder, which replaces the current one at the end. */
export class LevelReceiver implements StoreReceiver {
  readonly #path: string
  readonly #settings: LevelStoreSettings
  readonly #owner: ReceiverOwner
  readonly #decoder = new SnapshotDecoder()
  #database: LevelDatabase | null = null
  #state: ReceiverState = 'receiving'
  #records: StoreRecordWithValue[] = []
  #recordChars = 0
  #mark: StorePosition | null = null

  constructor(path: string, settings: LevelStoreSettings, owner: ReceiverOwner) {
    this.#path = path
    this.#settings = settings
    this.#owner = owner
  }

  async begin(): Promise<void> {
    await rm(this.#path, { recursive: true, force: true, maxRetries: 3 }).catch(
      (error: unknown) => {
        throw toStoreError(error, 'remove', this.#path)
      },
    )
    this.#database = await openDatabase(this.#path)
  }

  async write(chunk: Uint8Array): Promise<void> {
    await this.#step('receiving', async () => {
      // The chunk is copied, because the caller may reuse its buffer once this call resolves.
      // Decoded records are strings and do not refer to the chunk, but the decoder stores an
      // incomplete record as bytes.
      for (const record of this.#decoder.push(chunk.slice())) {
        this.#records.push(record)
        this.#recordChars += record.key.length + record.value.length
      }
      if (this.#recordChars >= this.#settings.receiveBatchBytes) await this.#writeOut(null)
    })
  }

  async finish(): Promise<StorePosition> {
    return await this.#step('finished', async () => {
      const mark = this.#decoder.finish()
      // The last batch contains the position (mark) of the state, and every batch is synced. A
      // store without a position is therefore incomplete.
      await this.#writeOut(mark)
      const { files } = this.#settings
      files.syncFolder(this.#path)
      this.#mark = mark
      return mark
    })
  }

  async swap(): Promise<void> {
    assert(this.#state === 'finished', 'only a finished snapshot is swapped in')
    assert(this.#database !== null && this.#mark !== null, 'a finished snapshot has a mark')
    this.#state = 'swapped'
    try {
      await this.#owner.swap(this.#database, this.#mark)
    } finally {
      this.#owner.ended()
    }
  }

  async abandon(): Promise<void> {
    if (this.#state === 'swapped' || this.#state === 'abandoned') return
    this.#state = 'abandoned'
    try {
      await this.#database?.close()
      await removeFolder(this.#path)
    } finally {
      this.#owner.ended()
    }
  }

  async #step<T>(next: 'receiving' | 'finished', work: () => Promise<T>): Promise<T> {
    assert(this.#state === 'receiving', `a snapshot that is ${this.#state} takes no more`)
    this.#state = 'busy'
    try {
      const result = await work()
      this.#enter(next)
      return result
    } catch (error) {
      this.#enter('failed')
      throw toLevelError(error, 'write', this.#path)
    }
  }

  /** Changes to another state unless the transfer was abandoned meanwhile. */
  #enter(state: ReceiverState): void {
    if (this.#state === 'busy') this.#state = state
  }

  async #writeOut(mark: StorePosition | null): Promise<void> {
    assert(this.#database !== null, 'a receiver has begun')
    // Requires twice the minimum, because after the store is filled, the log must have enough space
    // to continue.
    requireFreeStoreSpace(
      { ...this.#settings, freeBytesMin: 2 * this.#settings.freeBytesMin },
      this.#path,
    )
    const records = this.#records
    this.#records = []
    this.#recordChars = 0
    const received = (mark: StorePosition): LevelOperation[] => [
      ...storePositionOperations(mark),
      putWithChecksum(RECEIVED_SNAPSHOT_KEY, String(mark.position.index)),
    ]
    await writeLevelBatch(this.#database, records, mark === null ? [] : received(mark))
  }
}
