import { rm } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { assert } from '../lib/assert.ts'
import type {
  StateStore,
  StoreMark,
  StoreReceiver,
  StoreRecord,
  StoreSnapshot,
} from '../ports/state-store.ts'
import type { Index } from '../raft/types.ts'
import { asStoreError, corrupt, newerFormat, StoreError } from './errors.ts'
import { nodeFileSystem, replaceFile, type FileSystem } from './file-system.ts'
import { asLevelError, openDatabase, type LevelDatabase } from './level-database.ts'
import {
  assertRecord,
  CHUNK_BYTES_DEFAULT,
  encodeSnapshot,
  SnapshotDecoder,
  type FullRecord,
} from './snapshot-stream.ts'
import { decodeMark, encodeMark, STATE_FORMAT } from './state-mark.ts'

export interface StateStoreOptions {
  /** Size of the chunks of a snapshot. */
  readonly chunkBytes?: number
  /** Received records are written, and synced, in batches of about this size. */
  readonly receiveBatchBytes?: number
  /** Kept free on the file system of the state. */
  readonly freeBytesMin?: number
  readonly files?: FileSystem
}

type Settings = Required<StateStoreOptions>

const DEFAULTS: Settings = {
  chunkBytes: CHUNK_BYTES_DEFAULT,
  receiveBatchBytes: 1024 * 1024,
  freeBytesMin: 64 * 1024 * 1024,
  files: nodeFileSystem,
}

/** Folder of the state inside a data folder. */
export const STATE_NAME = 'state'
const CURRENT_NAME = 'CURRENT'

/** In the database: the mark, the index that a snapshot brought the state to, and after them, under a prefix, the records. */
const MARK_KEY = 'm'
const RECEIVED_KEY = 'o'
const RECORD_PREFIX = 'r'
const AFTER_RECORDS = 's'
const CHECK_CHARS = 8
const READ_RECORDS = 1000

type Half = 'A' | 'B'
interface Live {
  readonly half: Half
  readonly database: LevelDatabase
  readonly mark: StoreMark | null
  /** Where the last snapshot that was received took the state to. */
  readonly receivedIndex: Index | null
}
const otherHalf = (half: Half): Half => (half === 'A' ? 'B' : 'A')

/** LevelDB does not verify its blocks on reads, so each value carries its own CRC-32, of key and value. */
function seal(key: string, value: string): string {
  return crc32(value, crc32(key)).toString(16).padStart(CHECK_CHARS, '0') + value
}

function unseal(key: string, stored: string, path: string): string {
  const value = stored.slice(CHECK_CHARS)
  if (seal(key, value) !== stored)
    throw corrupt(path, `the record ${JSON.stringify(key)} is damaged`)
  return value
}

/**
 * The applied state in LevelDB, in `state/A` or `state/B`, whichever `state/CURRENT` names. A received snapshot is built
 * in the other one and becomes the live one by a durable change of CURRENT. After a failed write nothing more is
 * written: what LevelDB holds in memory no longer matches the disk.
 */
export class LevelStateStore implements StateStore {
  readonly #folder: string
  readonly #settings: Settings
  #half: Half
  #database: LevelDatabase
  #mark: StoreMark | null
  #receivedIndex: Index | null
  #isWriting = false
  #failure: Error | null = null
  #receiver: LevelReceiver | null = null

  private constructor(folder: string, settings: Settings, live: Live) {
    this.#folder = folder
    this.#settings = settings
    this.#half = live.half
    this.#database = live.database
    this.#mark = live.mark
    this.#receivedIndex = live.receivedIndex
  }

  /**
   * Opens the store of a data folder, an empty one when there is none yet. Removes what an interrupted transfer left.
   * @throws {StoreError}
   */
  static async open(dir: string, options: StateStoreOptions = {}): Promise<LevelStateStore> {
    const settings = { ...DEFAULTS, ...options }
    const { files } = settings
    const folder = `${dir}/${STATE_NAME}`
    if (!files.exists(folder)) {
      files.makeFolder(folder)
      files.syncFolder(dir)
    }
    const half = currentHalf(files, folder)
    const path = `${folder}/${half}`
    const database = await openDatabase(path)
    try {
      const mark = await readMark(database, path)
      const receivedIndex = await readReceivedIndex(database, path)
      // Only now: with the live half damaged, nothing may be changed.
      files.remove(`${folder}/${otherHalf(half)}`)
      files.remove(`${folder}/${CURRENT_NAME}.new`)
      files.syncFolder(folder)
      return new LevelStateStore(folder, settings, { half, database, mark, receivedIndex })
    } catch (error) {
      await database.close()
      throw asLevelError(error, 'read', path)
    }
  }

  mark(): StoreMark | null {
    return this.#mark
  }

  cameBySnapshot(): boolean {
    return this.#mark !== null && this.#mark.position.index === this.#receivedIndex
  }

  async *records(): AsyncGenerator<FullRecord> {
    for await (const records of readBatches(this.#database, this.#path, null)) yield* records
  }

  async write(records: readonly StoreRecord[], mark: StoreMark): Promise<void> {
    assert(!this.#isWriting, 'one write at a time')
    if (this.#failure !== null) throw this.#failure
    this.#isWriting = true
    try {
      for (const record of records) assertRecord(record)
      requireSpace(this.#settings, this.#folder)
      await writeBatch(this.#database, records, markOperations(mark))
      this.#mark = mark
    } catch (error) {
      this.#failure = asLevelError(error, 'write', this.#path)
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
      // Read from inside the view: a mark taken beside it could belong to another batch.
      const mark = await readMark(database, path, view)
      if (mark === null) {
        await view.close()
        throw new StoreError('MISSING', path, `${path} is empty: there is nothing to send yet.`)
      }
      const { chunkBytes } = this.#settings
      return {
        mark,
        chunks: (onKey) =>
          encodeSnapshot(mark, readBatches(database, path, view), chunkBytes, onKey),
        close: () => view.close(),
      }
    } catch (error) {
      throw asLevelError(error, 'read', path)
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

  async #swap(half: Half, database: LevelDatabase, mark: StoreMark): Promise<void> {
    assert(!this.#isWriting, 'the store is not written while it is replaced')
    const { files } = this.#settings
    const old = this.#database
    const oldPath = this.#path
    try {
      replaceFile(files, this.#folder, CURRENT_NAME, `${half}\n`)
    } catch (error) {
      // Which half the next start finds is unknown now, so neither may be written any more.
      this.#failure = asStoreError(error, 'replace', this.#folder)
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

/** CURRENT is made before the folder that it names, so without it there never was a store. */
function currentHalf(files: FileSystem, folder: string): Half {
  const path = `${folder}/${CURRENT_NAME}`
  if (files.exists(path)) {
    const text = Buffer.from(files.read(path)).toString('latin1')
    if (text === 'A\n' || text === 'B\n') return text === 'A\n' ? 'A' : 'B'
    throw corrupt(path, 'it names neither A nor B')
  }
  if (files.exists(`${folder}/A`) || files.exists(`${folder}/B`)) {
    throw corrupt(path, 'it is missing, and which half of the state is the live one is not known')
  }
  replaceFile(files, folder, CURRENT_NAME, 'A\n')
  return 'A'
}

function requireSpace(settings: Settings, folder: string): void {
  const freeBytes = settings.files.freeBytes(folder)
  if (freeBytes >= settings.freeBytesMin) return
  throw new StoreError(
    'NO_SPACE',
    folder,
    `the disk of ${folder} has ${freeBytes} bytes free, less than the ${settings.freeBytesMin} kept in reserve: free space and start again.`,
  )
}

type View = ReturnType<LevelDatabase['snapshot']>

async function readMark(
  database: LevelDatabase,
  path: string,
  view: View | null = null,
): Promise<StoreMark | null> {
  const stored = await database.get(MARK_KEY, view === null ? {} : { snapshot: view })
  if (stored === undefined) return null
  const mark = decodeMark(unseal(MARK_KEY, stored, path))
  if (mark === null) throw corrupt(path, 'the mark of the state is malformed')
  if (typeof mark === 'number') throw newerFormat(path, mark, STATE_FORMAT)
  return mark
}

async function readReceivedIndex(database: LevelDatabase, path: string): Promise<Index | null> {
  const stored = await database.get(RECEIVED_KEY)
  if (stored === undefined) return null
  const index = Number(unseal(RECEIVED_KEY, stored, path))
  if (!Number.isSafeInteger(index)) throw corrupt(path, 'the index of its snapshot is malformed')
  return index
}

/** By ascending key bytes, from a view that later writes do not change. */
async function* readBatches(
  database: LevelDatabase,
  path: string,
  view: View | null,
): AsyncGenerator<FullRecord[]> {
  try {
    const iterator = database.iterator({
      gte: RECORD_PREFIX,
      lt: AFTER_RECORDS,
      highWaterMarkBytes: CHUNK_BYTES_DEFAULT,
      ...(view === null ? {} : { snapshot: view }),
    })
    try {
      for (;;) {
        const found = await iterator.nextv(READ_RECORDS)
        if (found.length === 0) return
        yield found.map(([stored, value]) => {
          const key = stored.slice(RECORD_PREFIX.length)
          return { key, value: unseal(key, value, path) }
        })
      }
    } finally {
      await iterator.close()
    }
  } catch (error) {
    throw asLevelError(error, 'read', path)
  }
}

type Operation =
  | { readonly type: 'put'; readonly key: string; readonly value: string }
  | { readonly type: 'del'; readonly key: string }

/** Atomic and synced. */
async function writeBatch(
  database: LevelDatabase,
  records: readonly StoreRecord[],
  further: readonly Operation[],
): Promise<void> {
  const operations = records.map(({ key, value }): Operation =>
    value === null
      ? { type: 'del', key: RECORD_PREFIX + key }
      : { type: 'put', key: RECORD_PREFIX + key, value: seal(key, value) },
  )
  await database.batch([...operations, ...further], { sync: true })
}

function putSealed(key: string, value: string): Operation {
  return { type: 'put', key, value: seal(key, value) }
}

function markOperations(mark: StoreMark): Operation[] {
  return [putSealed(MARK_KEY, encodeMark(mark))]
}

/** What is left of it is removed at the next start, so a failure here costs space only. */
async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
}

interface ReceiverOwner {
  swap(database: LevelDatabase, mark: StoreMark): Promise<void>
  /** The receiver is over, by swap or abandonment. */
  ended(): void
}

type ReceiverState = 'receiving' | 'busy' | 'failed' | 'finished' | 'swapped' | 'abandoned'

class LevelReceiver implements StoreReceiver {
  readonly #path: string
  readonly #settings: Settings
  readonly #owner: ReceiverOwner
  readonly #decoder = new SnapshotDecoder()
  #database: LevelDatabase | null = null
  #state: ReceiverState = 'receiving'
  #records: FullRecord[] = []
  #recordChars = 0
  #mark: StoreMark | null = null

  constructor(path: string, settings: Settings, owner: ReceiverOwner) {
    this.#path = path
    this.#settings = settings
    this.#owner = owner
  }

  async begin(): Promise<void> {
    await rm(this.#path, { recursive: true, force: true, maxRetries: 3 }).catch(
      (error: unknown) => {
        throw asStoreError(error, 'remove', this.#path)
      },
    )
    this.#database = await openDatabase(this.#path)
  }

  async write(chunk: Uint8Array): Promise<void> {
    await this.#step('receiving', async () => {
      // The bytes may be the caller's again once this resolves; decoded records are text and own nothing of them,
      // but a part of a record is kept as it came.
      for (const record of this.#decoder.push(chunk.slice())) {
        this.#records.push(record)
        this.#recordChars += record.key.length + record.value.length
      }
      if (this.#recordChars >= this.#settings.receiveBatchBytes) await this.#writeOut(null)
    })
  }

  async finish(): Promise<StoreMark> {
    return await this.#step('finished', async () => {
      const mark = this.#decoder.finish()
      // Every batch was synced, and the mark comes with the last one: without a mark it is no whole store.
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
      throw asLevelError(error, 'write', this.#path)
    }
  }

  /** An abandonment that came meanwhile stands. */
  #enter(state: ReceiverState): void {
    if (this.#state === 'busy') this.#state = state
  }

  async #writeOut(mark: StoreMark | null): Promise<void> {
    assert(this.#database !== null, 'a receiver has begun')
    // Twice: filling this store must not take the room that the log beside it goes on with.
    requireSpace({ ...this.#settings, freeBytesMin: 2 * this.#settings.freeBytesMin }, this.#path)
    const records = this.#records
    this.#records = []
    this.#recordChars = 0
    const received = (mark: StoreMark): Operation[] => [
      ...markOperations(mark),
      putSealed(RECEIVED_KEY, String(mark.position.index)),
    ]
    await writeBatch(this.#database, records, mark === null ? [] : received(mark))
  }
}
