import { assert } from '../../lib/assert.ts'
import type {
  StateStore,
  StorePosition,
  StoreReceiver,
  StoreRecord,
  StoreSnapshot,
} from '../../ports/state-store.ts'
import type { Index } from '../../raft/types.ts'
import { toStoreError, corruptError, StoreError } from '../errors.ts'
import { type FileSystem, replaceFile } from '../file-system.ts'
import { toLevelError, type LevelDatabase, openDatabase } from './level-database.ts'
import { assertRecord, encodeSnapshot, type StoreRecordWithValue } from './snapshot-stream.ts'
import {
  LEVEL_STORE_DEFAULTS,
  storePositionOperations,
  readRecordBatches,
  readStorePosition,
  readReceivedIndex,
  type LevelStoreSettings,
  type StateStoreOptions,
  writeLevelBatch,
} from './level-records.ts'
import { requireFreeStoreSpace, removeFolder, LevelReceiver } from './level-receiver.ts'

/** Folder, inside a data folder, that contains the state. */
export const STATE_FOLDER_NAME = 'state'
const CURRENT_NAME = 'CURRENT'

type Half = 'A' | 'B'
interface Live {
  readonly half: Half
  readonly database: LevelDatabase
  readonly mark: StorePosition | null
  /** Index of the snapshot that was received last; null if there was none. */
  readonly receivedIndex: Index | null
}
const otherHalf = (half: Half): Half => (half === 'A' ? 'B' : 'A')

/**
 * The applied state in LevelDB, in `state/A` or `state/B`; the file `state/CURRENT` names the
 * folder in use. A received snapshot is written to the other folder; a durable change of CURRENT
 * then puts that folder into use. After a failed write, the store writes nothing more until a
 * received snapshot has replaced it, because LevelDB's memory may differ from the disk.
 */
export class LevelStateStore implements StateStore {
  readonly #folder: string
  readonly #settings: LevelStoreSettings
  #half: Half
  #database: LevelDatabase
  #mark: StorePosition | null
  #receivedIndex: Index | null
  #isWriting = false
  #failure: Error | null = null
  #receiver: LevelReceiver | null = null

  private constructor(folder: string, settings: LevelStoreSettings, live: Live) {
    this.#folder = folder
    this.#settings = settings
    this.#half = live.half
    this.#database = live.database
    this.#mark = live.mark
    this.#receivedIndex = live.receivedIndex
  }

  /**
   * Opens the store of a data folder; creates an empty one if there is none. Removes leftovers of
   * an interrupted transfer.
   * @throws {StoreError}
   */
  static async open(dir: string, options: StateStoreOptions = {}): Promise<LevelStateStore> {
    const settings = { ...LEVEL_STORE_DEFAULTS, ...options }
    const { files } = settings
    const folder = `${dir}/${STATE_FOLDER_NAME}`
    if (!files.exists(folder)) {
      files.makeFolder(folder)
      files.syncFolder(dir)
    }
    const half = currentHalf(files, folder)
    const path = `${folder}/${half}`
    const database = await openDatabase(path)
    try {
      const mark = await readStorePosition(database, path)
      const receivedIndex = await readReceivedIndex(database, path)
      // The other folder is removed only after the folder in use could be opened: if that one is
      // damaged, nothing may change.
      files.remove(`${folder}/${otherHalf(half)}`)
      files.remove(`${folder}/${CURRENT_NAME}.new`)
      files.syncFolder(folder)
      return new LevelStateStore(folder, settings, { half, database, mark, receivedIndex })
    } catch (error) {
      await database.close()
      throw toLevelError(error, 'read', path)
    }
  }

  mark(): StorePosition | null {
    return this.#mark
  }

  cameBySnapshot(): boolean {
    return this.#mark !== null && this.#mark.position.index === this.#receivedIndex
  }

  async *records(): AsyncGenerator<StoreRecordWithValue> {
    for await (const records of readRecordBatches(this.#database, this.#path, null)) yield* records
  }

  async write(records: readonly StoreRecord[], mark: StorePosition): Promise<void> {
    assert(!this.#isWriting, 'one write at a time')
    if (this.#failure !== null) throw this.#failure
    this.#isWriting = true
    try {
      for (const record of records) assertRecord(record)
      requireFreeStoreSpace(this.#settings, this.#folder)
      await writeLevelBatch(this.#database, records, storePositionOperations(mark))
      this.#mark = mark
    } catch (error) {
      this.#failure = toLevelError(error, 'write', this.#path)
      throw this.#failure
    } finally {
      this.#isWriting = false
    }
  }

  async snapshot(): Promise<StoreSnapshot> {
    const database = this.#database
    const path = this.#path
    try {
      const view = database.snapshot()
      // The position (mark) is read from the same view as the records, because a position from
      // outside of the view could belong to another batch.
      const mark = await readStorePosition(database, path, view)
      if (mark === null) {
        await view.close()
        throw new StoreError('MISSING', path, `${path} is empty: there is nothing to send yet.`)
      }
      const { chunkBytes } = this.#settings
      return {
        mark,
        chunks: (onKey) =>
          encodeSnapshot(mark, readRecordBatches(database, path, view), chunkBytes, onKey),
        close: () => view.close(),
      }
    } catch (error) {
      throw toLevelError(error, 'read', path)
    }
  }

  async receive(): Promise<StoreReceiver> {
    assert(this.#receiver === null, 'one snapshot is received at a time')
    const half = otherHalf(this.#half)
    const path = `${this.#folder}/${half}`
    const receiver = new LevelReceiver(path, this.#settings, {
      swap: (database, mark) => this.#swap(half, database, mark),
      ended: () => {
        this.#receiver = null
      },
    })
    this.#receiver = receiver
    try {
      await receiver.begin()
    } catch (error) {
      this.#receiver = null
      throw error
    }
    return receiver
  }

  async close(): Promise<void> {
    await this.#receiver?.abandon()
    await this.#database.close()
  }

  get #path(): string {
    return `${this.#folder}/${this.#half}`
  }

  async #swap(half: Half, database: LevelDatabase, mark: StorePosition): Promise<void> {
    assert(!this.#isWriting, 'the store is not written while it is replaced')
    const { files } = this.#settings
    const old = this.#database
    const oldPath = this.#path
    try {
      replaceFile(files, this.#folder, CURRENT_NAME, `${half}\n`)
    } catch (error) {
      // After this error, it is unknown which of the two folders the next start will open, so
      // neither may be written.
      this.#failure = toStoreError(error, 'replace', this.#folder)
      throw this.#failure
    }
    this.#half = half
    this.#database = database
    this.#mark = mark
    this.#receivedIndex = mark.position.index
    this.#failure = null
    await old.close()
    await removeFolder(oldPath)
  }
}

/**
 * CURRENT is created before the folder that it names. If both are missing, no store has existed
 * yet.
 */
function currentHalf(files: FileSystem, folder: string): Half {
  const path = `${folder}/${CURRENT_NAME}`
  if (files.exists(path)) {
    const text = Buffer.from(files.read(path)).toString('latin1')
    if (text === 'A\n' || text === 'B\n') return text === 'A\n' ? 'A' : 'B'
    throw corruptError(path, 'it names neither A nor B')
  }
  if (files.exists(`${folder}/A`) || files.exists(`${folder}/B`)) {
    throw corruptError(
      path,
      'it is missing, and which half of the state is the live one is not known',
    )
  }
  replaceFile(files, folder, CURRENT_NAME, 'A\n')
  return 'A'
}
