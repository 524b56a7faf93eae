import { createHash } from 'node:crypto'

import { type Lanes, lanesOf, type SetDigest } from './digest.ts'
import { decodeBlock, type Shape, type ShapedRecord } from './record-blocks.ts'
import { restoreLimits } from './restore-limits.ts'

/** What a restore announced when it began. */
export interface StagedHead {
  readonly id: string
  readonly chunks: number
  readonly bytes: number
  /** Hex; over all chunks in their order. */
  readonly sha256: string
  /** That the backup was taken of. */
  readonly clusterId: string
  /** Log time, UTC ms. */
  readonly expiresAtMs: number
}

const PREFIX = 'b/'
const HEAD_KEY = `${PREFIX}head`
const LAST_KEY = `${PREFIX}last`
const CHUNK_PREFIX = `${PREFIX}c`
const NUMBER_CHARACTERS = 6
/**
 * A stored chunk is base64 behind a mark; where it ends a block, the bytes of the block's text
 * stand before the mark.
 */
const ENDS = '.'
const GOES_ON = '+'
const STORED_CHUNK = /^(?:(\d+)\.|\+)/

/** Whether a record of the store belongs here. */
export function isStagedKey(key: string): boolean {
  return key.startsWith(PREFIX)
}

function chunkKey(number: number): string {
  return CHUNK_PREFIX + String(number).padStart(NUMBER_CHARACTERS, '0')
}

/**
 * The records of a backup on their way into the state: part of the replicated state, of its digests
 * and of snapshots, until one entry puts them in the place of the records that are there. Blocks
 * are decoded as they come, so that this entry is short; what is decoded follows from the chunks
 * and is no part of the state.
 */
export class StagedRestore {
  readonly #digest: SetDigest
  readonly #note: (key: string, value: string | null) => void
  readonly #stored = new Map<string, Lanes>()
  #head: StagedHead | null = null
  #lastId = ''
  #chunks: Uint8Array[] = []
  /** Numbers of the chunks that end a block. */
  #ends: number[] = []
  #bytes = 0
  #textBytes = 0
  /** By the number of the block. */
  #decoded = new Map<number, readonly ShapedRecord[]>()
  #decodedLevel = 0

  /** @param note told of each record that the store is to hold. */
  constructor(digest: SetDigest, note: (key: string, value: string | null) => void) {
    this.#digest = digest
    this.#note = note
  }

  /** null: no restore is under way. */
  get head(): StagedHead | null {
    return this.#head
  }

  /** The id of the restore that replaced the records last; '' when none did. */
  get lastId(): string {
    return this.#lastId
  }

  /** Chunks so far. */
  get received(): number {
    return this.#chunks.length
  }

  /** Of the chunks so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** All that was announced is there, and its last block is complete. */
  get isWhole(): boolean {
    const head = this.#head
    return (
      head !== null &&
      head.chunks === this.#chunks.length &&
      head.bytes === this.#bytes &&
      this.#ends.at(-1) === this.#chunks.length - 1
    )
  }

  /** Hex; over the bytes of all chunks. */
  sha256(): string {
    const sum = createHash('sha256')
    for (const chunk of this.#chunks) sum.update(chunk)
    return sum.digest('hex')
  }

  begin(head: StagedHead): void {
    this.clear()
    this.#head = head
    this.#put(HEAD_KEY, JSON.stringify(head))
  }

  /**
   * Takes the next chunk.
   * @param level the feature level that records are shaped by.
   * @returns false, with nothing changed, when the block that it ends cannot be read.
   */
  add(
    bytes: Uint8Array,
    endsBlock: boolean,
    kinds: ReadonlySet<string>,
    shaping: { readonly level: number; readonly shape: Shape },
  ): boolean {
    // The entry may be a view into a large buffer, which must not be kept alive.
    const chunk = Uint8Array.from(bytes)
    const textBytes = endsBlock ? this.#takeBlock(chunk, kinds, shaping) : 0
    if (textBytes === null) return false
    const number = this.#chunks.length
    this.#append(number, chunk, endsBlock ? textBytes : null)
    const mark = endsBlock ? `${textBytes}${ENDS}` : GOES_ON
    this.#put(chunkKey(number), mark + Buffer.from(chunk).toString('base64'))
    return true
  }

  /**
   * What is staged, decoded. Blocks that came before a restart or a change of the level are decoded
   * now.
   */
  records(
    kinds: ReadonlySet<string>,
    { level, shape }: { readonly level: number; readonly shape: Shape },
  ): readonly ShapedRecord[] {
    if (this.#decodedLevel !== level) this.#decoded.clear()
    return this.#ends.flatMap((end, block) => {
      const known = this.#decoded.get(block)
      if (known !== undefined) return known
      const from = (this.#ends[block - 1] ?? -1) + 1
      const bytes = Buffer.concat(this.#chunks.slice(from, end + 1))
      return decodeBlock(bytes, kinds, shape)?.records ?? []
    })
  }

  /** Drops what is staged. @param completedId of the restore that has replaced the records. */
  clear(completedId: string | null = null): void {
    for (const key of Array.from(this.#stored.keys())) if (key !== LAST_KEY) this.#drop(key)
    this.#head = null
    this.#chunks = []
    this.#ends = []
    this.#bytes = 0
    this.#textBytes = 0
    this.#decoded.clear()
    if (completedId === null) return
    this.#lastId = completedId
    this.#put(LAST_KEY, JSON.stringify(completedId))
  }

  /** What is too old by log time. */
  forget(logTimeMs: number): void {
    if (this.#head !== null && this.#head.expiresAtMs <= logTimeMs) this.clear()
  }

  /** Takes back one stored record, in the order of the keys. */
  load(key: string, value: string): void {
    this.#digest.add(this.#keep(key, value))
    if (key === HEAD_KEY) this.#head = JSON.parse(value) as StagedHead
    else if (key === LAST_KEY) this.#lastId = JSON.parse(value) as string
    else {
      const number = Number(key.slice(CHUNK_PREFIX.length))
      const [mark = '', textBytes] = STORED_CHUNK.exec(value) ?? []
      const bytes = Uint8Array.from(Buffer.from(value.slice(mark.length), 'base64'))
      this.#append(number, bytes, textBytes === undefined ? null : Number(textBytes))
    }
  }

  /** Those that the digest of the state is over. */
  *lanes(): Generator<Lanes> {
    yield* this.#stored.values()
  }

  /** @param textBytes of the block that it ends; null: it ends none. */
  #append(number: number, chunk: Uint8Array, textBytes: number | null): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (textBytes === null) return
    this.#ends.push(number)
    this.#textBytes += textBytes
  }

  /**
   * @returns the bytes of its text; null where it cannot be read, or is more than there is room
   * for.
   */
  #takeBlock(
    last: Uint8Array,
    kinds: ReadonlySet<string>,
    { level, shape }: { readonly level: number; readonly shape: Shape },
  ): number | null {
    const open = this.#chunks.slice((this.#ends.at(-1) ?? -1) + 1)
    const decoded = decodeBlock(Buffer.concat([...open, last]), kinds, shape)
    if (decoded === null) return null
    if (this.#textBytes + decoded.bytes > restoreLimits.textBytesMax) return null
    if (this.#decodedLevel !== level) this.#decoded.clear()
    this.#decodedLevel = level
    this.#decoded.set(this.#ends.length, decoded.records)
    return decoded.bytes
  }

  #put(key: string, value: string): void {
    this.#drop(key)
    this.#digest.add(this.#keep(key, value))
    this.#note(key, value)
  }

  #keep(key: string, value: string): Lanes {
    const lanes = lanesOf(key, value)
    this.#stored.set(key, lanes)
    return lanes
  }

  #drop(key: string): void {
    const lanes = this.#stored.get(key)
    if (lanes === undefined) return
    this.#stored.delete(key)
    this.#digest.remove(lanes)
    this.#note(key, null)
  }
}
