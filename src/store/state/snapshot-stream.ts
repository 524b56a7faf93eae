/**
 * Snapshot transfer format 1; little endian. Chunks may be cut anywhere. The same snapshot always
 * gives the same bytes, so an interrupted transfer can resume.
 *
 *     magic "FLOTSNP1" · u32 bytes of the mark · mark (store-position.ts)
 *     per record, by ascending key bytes: u32 bytes of the key (not 0) · u32 bytes of the value ·
 *     key · value (UTF-8)
 *     u32 0 · u32 0 · u64 count of records · SHA-256 of all bytes before it
 */
import { createHash } from 'node:crypto'
import type { StorePosition, StoreRecord } from '../../ports/state-store.ts'
import { assert } from '../../lib/assert.ts'
import { readSafeInteger, writeSafeInteger } from '../../raft/entry-codec.ts'
import { StoreError } from '../errors.ts'
import { decodeStorePosition, encodeStorePosition } from './store-position.ts'

export type StoreRecordWithValue = StoreRecord & { readonly value: string }

const KEY_BYTES_MAX = 4096
const VALUE_BYTES_MAX = 16 * 1024 * 1024
/** Maximum size of a chunk that a receiver accepts. */
const CHUNK_BYTES_MAX = 8 * 1024 * 1024
export const SNAPSHOT_CHUNK_BYTES_DEFAULT = 256 * 1024

const MAGIC = Buffer.from('FLOTSNP1', 'latin1')
const MARK_BYTES_MAX = 1024 * 1024
const HEAD_BYTES = MAGIC.length + 4
const RECORD_HEAD_BYTES = 8
const COUNT_BYTES = 8
const DIGEST_BYTES = 32

/**
 * Asserts that a store accepts the record, because the receiver of a snapshot would refuse other
 * records.
 */
export function assertRecord(record: StoreRecord): void {
  const { key, value } = record
  assert(key.length > 0 && key.isWellFormed(), 'a key is well-formed text and not empty')
  assert(Buffer.byteLength(key) <= KEY_BYTES_MAX, `a key has at most ${KEY_BYTES_MAX} bytes`)
  if (value === null) return
  assert(value.isWellFormed(), 'a value is well-formed text')
  const isShort = value.length * 3 <= VALUE_BYTES_MAX || Buffer.byteLength(value) <= VALUE_BYTES_MAX
  assert(isShort, `a value has at most ${VALUE_BYTES_MAX} bytes`)
}

/**
 * Fills chunks of equal size; only the last may be shorter. It yields each chunk once and does not
 * modify the chunk afterwards.
 */
class ChunkFiller {
  readonly #chunkBytes: number
  readonly #hash = createHash('sha256')
  #chunk: Buffer
  #used = 0
  #hashed = 0

  constructor(chunkBytes: number) {
    this.#chunkBytes = chunkBytes
    this.#chunk = Buffer.allocUnsafeSlow(chunkBytes)
  }

  *put(bytes: Uint8Array): Generator<Uint8Array> {
    let done = 0
    while (done < bytes.length) {
      const part = bytes.subarray(done, done + this.#chunkBytes - this.#used)
      this.#chunk.set(part, this.#used)
      this.#used += part.length
      done += part.length
      if (this.#used === this.#chunkBytes) yield this.#take()
    }
  }

  /** Digest of all bytes added before this call. */
  digest(): Uint8Array {
    this.#hash.update(this.#chunk.subarray(this.#hashed, this.#used))
    this.#hashed = this.#used
    return this.#hash.copy().digest()
  }

  *rest(): Generator<Uint8Array> {
    if (this.#used > 0) yield this.#take()
  }

  #take(): Uint8Array {
    this.#hash.update(this.#chunk.subarray(this.#hashed, this.#used))
    const taken = new Uint8Array(this.#chunk.buffer, 0, this.#used)
    this.#chunk = Buffer.allocUnsafeSlow(this.#chunkBytes)
    this.#used = 0
    this.#hashed = 0
    return taken
  }
}

function twoNumbers(first: number, second: number): Buffer {
  const bytes = Buffer.alloc(RECORD_HEAD_BYTES)
  bytes.writeUInt32LE(first, 0)
  bytes.writeUInt32LE(second, 4)
  return bytes
}

/**
 * Encodes a snapshot lazily, chunk by chunk. The records must be in ascending order of their key
 * bytes.
 */
export async function* encodeSnapshot(
  mark: StorePosition,
  batches: AsyncIterable<readonly StoreRecordWithValue[]>,
  chunkBytes: number,
  onKey: (key: string) => void = () => undefined,
): AsyncGenerator<Uint8Array> {
  const filler = new ChunkFiller(chunkBytes)
  const markBytes = Buffer.from(encodeStorePosition(mark), 'utf8')
  const head = Buffer.alloc(HEAD_BYTES)
  MAGIC.copy(head)
  head.writeUInt32LE(markBytes.length, MAGIC.length)
  yield* filler.put(head)
  yield* filler.put(markBytes)
  let count = 0
  for await (const records of batches) {
    for (const record of records) {
      onKey(record.key)
      const key = Buffer.from(record.key, 'utf8')
      const value = Buffer.from(record.value, 'utf8')
      yield* filler.put(twoNumbers(key.length, value.length))
      yield* filler.put(key)
      yield* filler.put(value)
    }
    count += records.length
  }
  const tail = Buffer.alloc(RECORD_HEAD_BYTES + COUNT_BYTES)
  writeSafeInteger(
    new DataView(tail.buffer, tail.byteOffset, tail.length),
    RECORD_HEAD_BYTES,
    count,
  )
  yield* filler.put(tail)
  yield* filler.put(filler.digest())
  yield* filler.rest()
}

function badSnapshot(what: string): StoreError {
  return new StoreError(
    'BAD_SNAPSHOT',
    'snapshot',
    `the received snapshot is unusable: ${what}; it must be sent again.`,
  )
}

type Step = 'head' | 'mark' | 'recordHead' | 'record' | 'count' | 'digest' | 'done'

/** Decodes chunks into complete records. Stores at most one record and one chunk. */
export class SnapshotDecoder {
  readonly #hash = createHash('sha256')
  #pieces: Uint8Array[] = []
  #available = 0
  #step: Step = 'head'
  #needed = HEAD_BYTES
  #keyBytes = 0
  #previousKey = Buffer.alloc(0)
  #count = 0
  #mark: StorePosition | null = null

  /**
   * Decodes the next chunk.
   * @returns the records that are complete with it.
   * @throws {StoreError} BAD_SNAPSHOT, NEWER_FORMAT; after an error, do not call `push` again.
   */
  push(chunk: Uint8Array): StoreRecordWithValue[] {
    if (chunk.length > CHUNK_BYTES_MAX) throw badSnapshot(`a chunk has ${chunk.length} bytes`)
    this.#pieces.push(chunk)
    this.#available += chunk.length
    const records: StoreRecordWithValue[] = []
    while (this.#step !== 'done' && this.#available >= this.#needed) {
      const record = this.#advance(this.#take(this.#needed))
      if (record !== null) records.push(record)
    }
    if (this.#step === 'done' && this.#available > 0) throw badSnapshot('bytes follow its end')
    return records
  }

  /**
   * Verifies the end of the snapshot.
   * @throws {StoreError} BAD_SNAPSHOT when the snapshot is incomplete.
   */
  finish(): StorePosition {
    if (this.#step !== 'done' || this.#mark === null) throw badSnapshot('its end is missing')
    return this.#mark
  }

  #take(count: number): Buffer {
    const joined = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces)
    assert(joined !== undefined, 'bytes are read only if there are some')
    const rest = joined.subarray(count)
    this.#pieces = rest.length === 0 ? [] : [rest]
    this.#available = rest.length
    const taken = Buffer.from(joined.buffer, joined.byteOffset, count)
    if (this.#step !== 'digest') this.#hash.update(taken)
    return taken
  }

  #expect(step: Step, needed: number): void {
    this.#step = step
    this.#needed = needed
  }

  #advance(bytes: Buffer): StoreRecordWithValue | null {
    switch (this.#step) {
      case 'head': {
        const markBytes = bytes.readUInt32LE(MAGIC.length)
        if (MAGIC.compare(bytes, 0, MAGIC.length) !== 0) throw badSnapshot('it is of another kind')
        if (markBytes > MARK_BYTES_MAX) throw badSnapshot('its mark is too large')
        this.#expect('mark', markBytes)
        return null
      }
      case 'mark':
        this.#readMark(bytes)
        return null
      case 'recordHead':
        this.#readRecordHead(bytes)
        return null
      case 'record':
        return this.#readRecord(bytes)
      case 'count': {
        const count = readSafeInteger(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 0)
        if (count !== this.#count) throw badSnapshot(`it has ${this.#count} of ${count} records`)
        this.#expect('digest', DIGEST_BYTES)
        return null
      }
      case 'digest':
        // @guard checksum-of-a-snapshot
        if (this.#hash.digest().compare(bytes) !== 0) throw badSnapshot('its checksum is wrong')
        this.#expect('done', 0)
        return null
      case 'done':
        return null
    }
  }

  #readMark(bytes: Buffer): void {
    const mark = decodeStorePosition(bytes.toString('utf8'))
    if (mark === null) throw badSnapshot('its mark is malformed')
    if (typeof mark === 'number') {
      throw new StoreError(
        'NEWER_FORMAT',
        'snapshot',
        `the snapshot has format ${mark}, which this program does not read: run the same release on all controllers.`,
      )
    }
    this.#mark = mark
    this.#expect('recordHead', RECORD_HEAD_BYTES)
  }

  #readRecordHead(bytes: Buffer): void {
    this.#keyBytes = bytes.readUInt32LE(0)
    const valueBytes = bytes.readUInt32LE(4)
    if (this.#keyBytes === 0 && valueBytes === 0) {
      this.#expect('count', COUNT_BYTES)
      return
    }
    if (this.#keyBytes === 0 || this.#keyBytes > KEY_BYTES_MAX || valueBytes > VALUE_BYTES_MAX) {
      throw badSnapshot(`record ${this.#count} is beyond the limits`)
    }
    this.#expect('record', this.#keyBytes + valueBytes)
  }

  #readRecord(bytes: Buffer): StoreRecordWithValue {
    const key = bytes.subarray(0, this.#keyBytes)
    if (this.#previousKey.compare(key) >= 0) throw badSnapshot('its records are out of order')
    this.#previousKey = Buffer.from(key)
    this.#count += 1
    this.#expect('recordHead', RECORD_HEAD_BYTES)
    return { key: key.toString('utf8'), value: bytes.toString('utf8', this.#keyBytes) }
  }
}
