import { crc32 } from 'node:zlib'
import type { StorePosition, StoreRecord } from '../../ports/state-store.ts'
import type { Index } from '../../raft/types.ts'
import { corruptError, unsupportedFormatError } from '../errors.ts'
import { type FileSystem, nodeFileSystem } from '../file-system.ts'
import { toLevelError, type LevelDatabase } from './level-database.ts'
import { SNAPSHOT_CHUNK_BYTES_DEFAULT, type StoreRecordWithValue } from './snapshot-stream.ts'
import { decodeStorePosition, encodeStorePosition, STATE_FORMAT } from './store-position.ts'

export interface StateStoreOptions {
  /** Size of the chunks of a snapshot. */
  readonly chunkBytes?: number
  /** Approximate size of the batches in which the receiver writes and syncs records. */
  readonly receiveBatchBytes?: number
  /** Bytes that the store must leave free on its file system. */
  readonly freeBytesMin?: number
  readonly files?: FileSystem
}

export type LevelStoreSettings = Required<StateStoreOptions>

export const LEVEL_STORE_DEFAULTS: LevelStoreSettings = {
  chunkBytes: SNAPSHOT_CHUNK_BYTES_DEFAULT,
  receiveBatchBytes: 1024 * 1024,
  freeBytesMin: 64 * 1024 * 1024,
  files: nodeFileSystem,
}

/**
 * Keys of the database: the position (mark) of the state, the index of the last received snapshot,
 * and the prefix of the keys of all records.
 */
const MARK_KEY = 'm'
export const RECEIVED_SNAPSHOT_KEY = 'o'
const RECORD_PREFIX = 'r'
const AFTER_RECORDS = 's'
const CHECK_CHARS = 8
const READ_RECORDS = 1000
/** Maximum records added to a batch before the event loop does other work. */
const SLICE_RECORDS = 2000

/**
 * Prepends a CRC-32 of key and value to the value, because LevelDB does not verify its blocks on
 * reads.
 */
function seal(key: string, value: string): string {
  return crc32(value, crc32(key)).toString(16).padStart(CHECK_CHARS, '0') + value
}

function unseal(key: string, stored: string, path: string): string {
  const value = stored.slice(CHECK_CHARS)
  // @guard crc-of-a-stored-value
  if (seal(key, value) !== stored)
    throw corruptError(path, `the record ${JSON.stringify(key)} is damaged`)
  return value
}

type View = ReturnType<LevelDatabase['snapshot']>

/**
 * The position of the stored state; null if the database is empty.
 * @throws {StoreError} CORRUPT or NEWER_FORMAT.
 */
export async function readStorePosition(
  database: LevelDatabase,
  path: string,
  view: View | null = null,
): Promise<StorePosition | null> {
  const stored = await database.get(MARK_KEY, view === null ? {} : { snapshot: view })
  if (stored === undefined) return null
  const mark = decodeStorePosition(unseal(MARK_KEY, stored, path))
  if (mark === null) throw corruptError(path, 'the mark of the state is malformed')
  if (typeof mark === 'number') throw unsupportedFormatError(path, mark, STATE_FORMAT)
  return mark
}

export async function readReceivedIndex(
  database: LevelDatabase,
  path: string,
): Promise<Index | null> {
  const stored = await database.get(RECEIVED_SNAPSHOT_KEY)
  if (stored === undefined) return null
  const index = Number(unseal(RECEIVED_SNAPSHOT_KEY, stored, path))
  if (!Number.isSafeInteger(index))
    throw corruptError(path, 'the index of its snapshot is malformed')
  return index
}

/** Reads records by ascending key bytes, from a view that later writes do not change. */
export async function* readRecordBatches(
  database: LevelDatabase,
  path: string,
  view: View | null,
): AsyncGenerator<StoreRecordWithValue[]> {
  try {
    const iterator = database.iterator({
      gte: RECORD_PREFIX,
      lt: AFTER_RECORDS,
      highWaterMarkBytes: SNAPSHOT_CHUNK_BYTES_DEFAULT,
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
    throw toLevelError(error, 'read', path)
  }
}

export type LevelOperation =
  | { readonly type: 'put'; readonly key: string; readonly value: string }
  | { readonly type: 'del'; readonly key: string }

/**
 * Writes a batch atomically and synced. A large batch is built in slices, so that the event loop
 * can do other work in between.
 */
export async function writeLevelBatch(
  database: LevelDatabase,
  records: readonly StoreRecord[],
  further: readonly LevelOperation[],
): Promise<void> {
  if (records.length <= SLICE_RECORDS) {
    await database.batch([...records.map(operationOf), ...further], { sync: true })
    return
  }
  const batch = database.batch()
  try {
    for (let at = 0; at < records.length; at += SLICE_RECORDS) {
      for (const record of records.slice(at, at + SLICE_RECORDS)) add(batch, operationOf(record))
      await new Promise((resolve) => setImmediate(resolve))
    }
    for (const operation of further) add(batch, operation)
    await batch.write({ sync: true })
  } finally {
    // Only an unwritten batch needs closing: LevelDB closes a batch when it writes it.
    await batch.close()
  }
}

function operationOf({ key, value }: StoreRecord): LevelOperation {
  return value === null
    ? { type: 'del', key: RECORD_PREFIX + key }
    : { type: 'put', key: RECORD_PREFIX + key, value: seal(key, value) }
}

function add(batch: ReturnType<LevelDatabase['batch']>, operation: LevelOperation): void {
  if (operation.type === 'del') batch.del(operation.key)
  else batch.put(operation.key, operation.value)
}

/** An operation that writes a value with its checksum. */
export function putWithChecksum(key: string, value: string): LevelOperation {
  return { type: 'put', key, value: seal(key, value) }
}

/**
 * The operations that set the position of the stored state. The caller must write them in the same
 * batch as the state's records.
 */
export function storePositionOperations(mark: StorePosition): LevelOperation[] {
  return [putWithChecksum(MARK_KEY, encodeStorePosition(mark))]
}
