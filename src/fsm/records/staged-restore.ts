import { createHash } from 'node:crypto'

import type { KindName } from '../../entities/kind-records.ts'
import { type DigestLanes, digestLanes, type SetDigest } from './digest.ts'
import {
  type DecodedBlock,
  decodeBlock,
  type RecordNormalizer,
  type NormalizedRecord,
  type RecordValues,
} from './record-blocks.ts'
import { restoreLimits } from './restore-limits.ts'

/** Sizes and digest that a restore announced when it began. */
export interface StagedHead {
  readonly id: string
  readonly chunks: number
  readonly bytes: number
  /** SHA-256 over all chunks in order, in hex. */
  readonly sha256: string
  /** Id of the cluster from which the backup was taken. */
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
 * Separator before the base64 in a stored chunk. If the chunk completes a block, the size of the
 * block's text precedes the separator.
 */
const ENDS = '.'
const GOES_ON = '+'
const STORED_CHUNK = /^(?:(\d+)\.|\+)/

/** Whether a key in the store belongs to a staged restore. */
export function isStagedKey(key: string): boolean {
  return key.startsWith(PREFIX)
}

function chunkKey(number: number): string {
  return CHUNK_PREFIX + String(number).padStart(NUMBER_CHARACTERS, '0')
}

/** One or more chunks that together are one compressed text. */
interface StagedBlock {
  readonly chunks: readonly Uint8Array[]
  /**
   * The decoded records; null: the block was loaded from the store and has not been decoded yet.
   */
  readonly decoded: readonly NormalizedRecord[] | null
  /** Feature level at which the block was decoded. */
  readonly level: number
}

/**
 * Converts records to records with exactly the fields that their tables have at the current feature
 * level.
 */
interface Shaping {
  readonly featureLevel: number
  shaped(kind: KindName, values: RecordValues): NormalizedRecord
}

/**
 * Records of a backup that a restore has staged: they are part of the replicated state, its digests
 * and its snapshots until one log entry replaces the existing records with them, or drops them.
 * Blocks are decoded on arrival, so that this entry is fast. The decoded records are derived from
 * the chunks and are not part of the state.
 */
export class StagedRestore {
  readonly #digest: SetDigest
  readonly #shaping: Shaping
  readonly #note: (key: string, value: string | null) => void
  readonly #stored = new Map<string, DigestLanes>()
  #head: StagedHead | null = null
  #lastId = ''
  #blocks: StagedBlock[] = []
  /** Chunks of the last block, which is still incomplete. */
  #open: Uint8Array[] = []
  #received = 0
  #bytes = 0
  #textBytes = 0

  /** @param note called for each changed value in the store; a null value deletes its key. */
  constructor(
    digest: SetDigest,
    shaping: Shaping,
    note: (key: string, value: string | null) => void,
  ) {
    this.#digest = digest
    this.#shaping = shaping
    this.#note = note
  }

  /** The restore in progress; null: there is none. */
  get head(): StagedHead | null {
    return this.#head
  }

  /** The id of the last restore that replaced the records; '' if there was none. */
  get lastId(): string {
    return this.#lastId
  }

  /** Number of chunks received so far. */
  get received(): number {
    return this.#received
  }

  /** Total bytes of the chunks received so far. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * True if all announced chunks have arrived, the last block is complete, and the digest is
   * correct.
   */
  get isWhole(): boolean {
    const head = this.#head
    if (head === null || head.chunks !== this.#received || head.bytes !== this.#bytes) return false
    return this.#open.length === 0 && head.sha256 === this.#sha256()
  }

  #sha256(): string {
    const sum = createHash('sha256')
    for (const { chunks } of this.#blocks) for (const chunk of chunks) sum.update(chunk)
    return sum.digest('hex')
  }

  begin(head: StagedHead): void {
    this.clear()
    this.#head = head
    this.#put(HEAD_KEY, JSON.stringify(head))
  }

  /**
   * Adds the next chunk.
   * @param kinds kinds that a block may contain.
   * @returns false, with nothing changed, when the chunk completes a block that cannot be decoded
   * or whose text exceeds its limit.
   */
  add(bytes: Uint8Array, endsBlock: boolean, kinds: ReadonlySet<KindName>): boolean {
    // The bytes are copied, because a view would keep the large buffer of the entry in memory.
    const chunk = Uint8Array.from(bytes)
    const block = endsBlock ? this.#decode([...this.#open, chunk], kinds) : null
    if (endsBlock) {
      if (block === null) return false
      if (this.#textBytes + block.bytes > restoreLimits.textBytesMax) return false
    }
    const mark = block === null ? GOES_ON : `${block.bytes}${ENDS}`
    this.#put(chunkKey(this.#received), mark + Buffer.from(chunk).toString('base64'))
    this.#append(chunk, block)
    return true
  }

  /**
   * The staged records. Blocks that were loaded after a restart, or decoded at another feature
   * level, are decoded by this call.
   */
  records(kinds: ReadonlySet<KindName>): readonly NormalizedRecord[] {
    return this.#blocks.flatMap(({ chunks, decoded, level }) => {
      if (decoded !== null && level === this.#shaping.featureLevel) return decoded
      // @guard 43-restore-forgets-what-was-staged-before-a-start
      return this.#decode(chunks, kinds)?.records ?? []
    })
  }

  #decode(chunks: readonly Uint8Array[], kinds: ReadonlySet<KindName>): DecodedBlock | null {
    const shape: RecordNormalizer = (kind, values) => this.#shaping.shaped(kind, values)
    return decodeBlock(Buffer.concat(chunks), kinds, shape)
  }

  /**
   * Drops the staged records.
   * @param completedId id of the restore, if it has replaced the records.
   */
  clear(completedId: string | null = null): void {
    // @guard 44-restore-takes-effect-twice:3
    for (const key of Array.from(this.#stored.keys())) if (key !== LAST_KEY) this.#drop(key)
    this.#head = null
    this.#blocks = []
    this.#open = []
    this.#received = 0
    this.#bytes = 0
    this.#textBytes = 0
    if (completedId === null) return
    this.#lastId = completedId
    this.#put(LAST_KEY, JSON.stringify(completedId))
  }

  /** Drops the restore if it is too old in log time. */
  forget(logTimeMs: number): void {
    if (this.#head !== null && this.#head.expiresAtMs <= logTimeMs) this.clear()
  }

  /** Loads one value from the store; must be called in the order of the keys. */
  load(key: string, value: string): void {
    this.#digest.add(this.#keep(key, value))
    if (key === HEAD_KEY) this.#head = JSON.parse(value) as StagedHead
    else if (key === LAST_KEY) this.#lastId = JSON.parse(value) as string
    else {
      const [mark = '', textBytes] = STORED_CHUNK.exec(value) ?? []
      const chunk = Uint8Array.from(Buffer.from(value.slice(mark.length), 'base64'))
      const block = textBytes === undefined ? null : { records: null, bytes: Number(textBytes) }
      this.#append(chunk, block)
    }
  }

  /** Hash lanes (32-bit parts of a SHA-256) of all stored values, for the state digest. */
  *lanes(): Generator<DigestLanes> {
    yield* this.#stored.values()
  }

  /**
   * Adds a chunk to the staged ones.
   * @param block the block that this chunk completes; null: the chunk completes none.
   */
  #append(
    chunk: Uint8Array,
    block: { readonly records: readonly NormalizedRecord[] | null; readonly bytes: number } | null,
  ): void {
    this.#open.push(chunk)
    this.#received += 1
    this.#bytes += chunk.length
    if (block === null) return
    const level = this.#shaping.featureLevel
    this.#blocks.push({ chunks: this.#open, decoded: block.records, level })
    this.#open = []
    this.#textBytes += block.bytes
  }

  #put(key: string, value: string): void {
    this.#drop(key)
    this.#digest.add(this.#keep(key, value))
    this.#note(key, value)
  }

  #keep(key: string, value: string): DigestLanes {
    const lanes = digestLanes(key, value)
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
