import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { AuditRecord } from '../../ports/audit.ts'
import {
  auditLimits,
  formatAuditLine,
  auditLineChangeCharacters,
  auditLineActor,
  auditLineIndex,
  parseAuditLine,
  auditLineTimeMs,
  quoteAuditText,
  removeAuditLineChange,
} from './audit-line.ts'
import { type DigestLanes, digestLanes, type SetDigest } from './digest.ts'

/**
 * A full block: one compressed text, in which a record takes about 150 bytes of text and 40 bytes
 * of memory. As an object it would take 1,500 bytes.
 */
interface Block {
  readonly key: string
  readonly packed: Uint8Array
  readonly lastAtMs: number
  readonly lanes: DigestLanes
  /** Number of records of each actor in the block, by the stored name of the actor. */
  readonly counts: ReadonlyMap<string, number>
  /** Characters of the stored changes, by actor. */
  readonly changes: ReadonlyMap<string, number>
  readonly size: number
}

/**
 * Maximum blocks from which one log entry drops changes; each block takes about half a millisecond.
 */
const STRIPPED_BLOCKS_MAX = 8

const PREFIX = 'a/'
const KEY_CHARACTERS = 11

function keyOf(index: number): string {
  return PREFIX + index.toString(36).padStart(KEY_CHARACTERS, '0')
}

/**
 * The compression window is small: a block is about 10 KiB long, and the default window would take
 * 256 KiB for each block.
 */
const PACKING = { level: 1, windowBits: 13, memLevel: 6, chunkSize: 4096 } as const

/**
 * Compresses text. Different versions of zlib produce different bytes, so the result stays in this
 * process and no digest covers it.
 */
function pack(text: string): Uint8Array {
  return Uint8Array.from(deflateRawSync(text, PACKING))
}

function linesOf({ packed }: Block): string[] {
  return inflateRawSync(packed).toString('utf8').split('\n')
}

/** Adds to a count, and deletes the count if it becomes zero. */
function addCount(counts: Map<string, number>, actor: string, more: number): void {
  const count = (counts.get(actor) ?? 0) + more
  if (count > 0) counts.set(actor, count)
  else counts.delete(actor)
}

/**
 * The actor with the highest count, if that exceeds an actor's share of the maximum; null: no count
 * exceeds it.
 */
function busiestOf(counts: ReadonlyMap<string, number>, maximum: number): string | null {
  let found: string | null = null
  let most = maximum / auditLimits.actorPartMax
  for (const [actor, count] of counts) {
    // Between equal counts, the name decides, because the order of a map may differ between
    // processes.
    if (count > most || (count === most && found !== null && actor < found)) {
      found = actor
      most = count
    }
  }
  return found
}

/**
 * Audit log: the latest writes in log order, from all callers and with every outcome. Digest, key
 * and storage are computed for each block, because computing them for each entry would be
 * expensive.
 */
export class AuditLog {
  readonly #digest: SetDigest
  #blocks: Block[] = []
  /** Number of records in all full blocks. */
  #size = 0
  readonly #counts = new Map<string, number>()
  /** Characters of the stored changes in all full blocks, by actor. */
  readonly #changes = new Map<string, number>()
  #changesSize = 0
  /** Lines of the last block, which is not full yet. */
  #lines: string[] = []
  /** Characters of the stored changes in `#lines`. */
  #openChanges = 0
  #openKey = ''
  /** Changed blocks by key that have not been written to the store yet; null: removed. */
  readonly #changed = new Map<string, string | null>()
  /**
   * Serialized fields of the most recent caller. They are cached because most callers write more
   * than once.
   */
  #who = { actor: '', actorName: '', session: '', address: '', text: '"","","",""' }

  /** @param digest the sum that includes the hashes of full blocks. */
  constructor(digest: SetDigest) {
    this.#digest = digest
  }

  get size(): number {
    return this.#size + this.#lines.length
  }

  /**
   * Adds a record.
   * @returns the number of characters that the record takes in the store.
   */
  add(record: AuditRecord): number {
    if (this.#lines.length === 0) this.#openKey = keyOf(record.index)
    const line = formatAuditLine(record, this.#whoOf(record))
    this.#lines.push(line)
    this.#openChanges += record.change === '' ? 0 : auditLineChangeCharacters(line)
    if (this.#isFull) this.#close(record.atMs)
    return line.length
  }

  get #isFull(): boolean {
    return (
      this.#lines.length === auditLimits.blockRecords ||
      this.#openChanges >= auditLimits.blockChangeCharactersMax
    )
  }

  #whoOf({ actor, actorName, session, address }: AuditRecord): string {
    const last = this.#who
    const isSame =
      last.session === session &&
      last.actor === actor &&
      last.address === address &&
      last.actorName === actorName
    if (!isSame) {
      const text = [actor, actorName, session, address].map(quoteAuditText).join(',')
      this.#who = { actor, actorName, session, address, text }
    }
    return this.#who.text
  }

  #close(lastAtMs: number): void {
    this.#blocks.push(this.#newBlock(this.#openKey, this.#lines, lastAtMs))
    this.#lines = []
    this.#openChanges = 0
  }

  #newBlock(key: string, lines: readonly string[], lastAtMs: number): Block {
    const text = lines.join('\n')
    const lanes = digestLanes(key, text)
    const counts = new Map<string, number>()
    const changes = new Map<string, number>()
    for (const line of lines) {
      const actor = auditLineActor(line)
      addCount(counts, actor, 1)
      addCount(changes, actor, auditLineChangeCharacters(line))
    }
    this.#digest.add(lanes)
    this.#changed.set(key, text)
    this.#count({ counts, changes, size: lines.length }, 1)
    return { key, packed: pack(text), lastAtMs, lanes, counts, changes, size: lines.length }
  }

  #forgetBlock(block: Block): void {
    this.#digest.remove(block.lanes)
    this.#changed.set(block.key, null)
    this.#count(block, -1)
  }

  #count(
    { counts, changes, size }: Pick<Block, 'counts' | 'changes' | 'size'>,
    sign: 1 | -1,
  ): void {
    this.#size += sign * size
    for (const [actor, count] of counts) addCount(this.#counts, actor, sign * count)
    for (const [actor, characters] of changes) {
      addCount(this.#changes, actor, sign * characters)
      this.#changesSize += sign * characters
    }
  }

  /**
   * Loads one block that `takeChanged` returned. The caller must load the blocks in ascending order
   * of their keys.
   * @throws on a malformed block, or one that is out of order.
   */
  load(key: string, text: string): void {
    const lines = text.split('\n')
    const { index } = parseAuditLine(lines[0] ?? '')
    const isWhole = lines.length <= auditLimits.blockRecords && keyOf(Number(index)) === key
    if (!isWhole || key <= this.#openKey) {
      throw new Error(`the store holds a malformed block of the audit: ${key.slice(0, 80)}`)
    }
    // The previous block is closed even if it is not full: if an actor's records were removed, a
    // block before the last one may have fewer records.
    if (this.#lines.length > 0) {
      this.#close(auditLineTimeMs(this.#lines.at(-1) ?? ''))
      this.#changed.delete(this.#openKey)
    }
    this.#openKey = key
    this.#lines = lines
    this.#openChanges = lines.reduce((sum, line) => sum + auditLineChangeCharacters(line), 0)
    if (!this.#isFull) return
    this.#close(auditLineTimeMs(lines.at(-1) ?? ''))
    this.#changed.delete(key)
  }

  /**
   * Drops the oldest block if it is too old. If the log has too many records, drops the oldest
   * records of an actor that has too many or, without such an actor, the oldest block. Otherwise
   * drops stored changes if they are too large.
   * @param isByActor true from feature level 2.
   * @returns the number of characters by which the store changes.
   */
  forget(logTimeMs: number, isByActor: boolean): number {
    const oldest = this.#blocks[0]
    if (oldest === undefined) return 0
    const isTooOld = oldest.lastAtMs < logTimeMs - auditLimits.ageMsMax
    if (!isTooOld && this.size - auditLimits.blockRecords < auditLimits.recordsMax) {
      return this.#forgetChanges()
    }
    const busiest = isTooOld || !isByActor ? null : busiestOf(this.#counts, auditLimits.recordsMax)
    // @guard audit-pushed-out--own
    if (busiest !== null) return this.#forgetOldestOf(busiest)
    this.#blocks.shift()
    this.#forgetBlock(oldest)
    return oldest.key.length
  }

  /**
   * While all changes together are too large, drops the oldest changes, but keeps their records. If
   * one actor has too large a part of the changes, the oldest changes of that actor are dropped
   * first.
   * @returns the number of characters by which the store changes.
   */
  #forgetChanges(): number {
    let stored = 0
    for (let at = 0; at < STRIPPED_BLOCKS_MAX; at += 1) {
      if (this.#changesSize <= auditLimits.changesCharactersMax) break
      // @guard history-and-undo--flood
      const busiest = busiestOf(this.#changes, auditLimits.changesCharactersMax)
      const found = this.#blocks.findIndex(({ changes }) =>
        busiest === null ? changes.size > 0 : changes.has(busiest),
      )
      const block = this.#blocks[found]
      if (block === undefined) break
      this.#forgetBlock(block)
      const lines = linesOf(block).map((line) =>
        busiest === null || auditLineActor(line) === busiest ? removeAuditLineChange(line) : line,
      )
      this.#blocks[found] = this.#newBlock(block.key, lines, block.lastAtMs)
      stored += lines.reduce((sum, line) => sum + line.length, 0)
    }
    return stored
  }

  /**
   * Drops the records of one actor from the oldest block that contains any. If that is the last
   * full block, drops the oldest block instead.
   */
  #forgetOldestOf(actor: string): number {
    const found = this.#blocks.findIndex(({ counts }) => counts.has(actor))
    const at = found === this.#blocks.length - 1 ? 0 : found
    const block = this.#blocks[at]
    if (block === undefined) return 0
    this.#forgetBlock(block)
    const left = at === found ? linesOf(block).filter((line) => auditLineActor(line) !== actor) : []
    const [first] = left
    if (first === undefined) {
      this.#blocks.splice(at, 1)
      return block.key.length
    }
    this.#blocks[at] = this.#newBlock(
      keyOf(auditLineIndex(first)),
      left,
      auditLineTimeMs(left.at(-1) ?? ''),
    )
    return left.reduce((sum, line) => sum + line.length, 0)
  }

  /**
   * Returns and clears the blocks that have not been written to the store; null for a removed
   * block.
   */
  takeChanged(): (readonly [string, string | null])[] {
    const changed = [...this.#changed]
    this.#changed.clear()
    if (this.#lines.length > 0) changed.push([this.#openKey, this.#lines.join('\n')])
    return changed
  }

  /** Hash lanes (32-bit parts of a SHA-256) of all full blocks, which the digest sums. */
  *lanes(): Generator<DigestLanes> {
    for (const { lanes } of this.#blocks) yield lanes
  }

  /** Adds the records of the last block, which is not full, to a digest. */
  openInto(digest: SetDigest): void {
    if (this.#lines.length > 0) digest.add(digestLanes(this.#openKey, this.#lines.join('\n')))
  }

  /** A page of all records, the newest first; reads only the blocks that it needs. */
  page(offset: number, limit: number): EntityRecord[] {
    const page: EntityRecord[] = []
    let skip = offset
    for (const { count, lines } of this.#newestBlocks()) {
      if (page.length === limit) break
      if (skip < count)
        page.push(
          ...lines()
            .slice(skip, skip + limit - page.length)
            .map(parseAuditLine),
        )
      skip = Math.max(0, skip - count)
    }
    return page
  }

  /**
   * All current records, the newest first. The iteration omits records that are written after it
   * began.
   */
  *newestFirst(): Generator<EntityRecord> {
    for (const line of this.newestLines()) yield parseAuditLine(line)
  }

  /** The audit record of the entry at a log index; undefined if it is not stored. */
  at(index: number): EntityRecord | undefined {
    const key = keyOf(index)
    const isOpen = this.#lines.length > 0 && key >= this.#openKey
    const block = isOpen ? undefined : this.#blocks.findLast((one) => one.key <= key)
    const lines = isOpen ? this.#lines : block === undefined ? [] : linesOf(block)
    const line = lines.find((one) => auditLineIndex(one) === index)
    return line === undefined ? undefined : parseAuditLine(line)
  }

  /** The lines of all current records, in the order of `newestFirst`. */
  *newestLines(): Generator<string> {
    for (const { lines } of this.#newestBlocks()) yield* lines()
  }

  #newestBlocks(): { readonly count: number; readonly lines: () => string[] }[] {
    const open = [...this.#lines].reverse()
    const full = this.#blocks.map((block) => ({
      count: block.size,
      lines: () => linesOf(block).reverse(),
    }))
    return [{ count: open.length, lines: () => open }, ...full.reverse()]
  }
}
