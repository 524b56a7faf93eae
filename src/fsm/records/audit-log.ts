import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { AuditRecord } from '../../ports/audit.ts'
import { type Lanes, digestLanes, type SetDigest } from './digest.ts'

/**
 * Constants and not options, because they are part of the replicated state: every controller must
 * drop records at the same entry.
 */
export const auditLimits = {
  recordsMax: 100_000,
  /** Log time. */
  ageMsMax: 30 * 24 * 60 * 60_000,
  /** Audit records per block. A block is stored, hashed and dropped as a whole. */
  blockRecords: 64,
  /**
   * An actor with more than a fraction (1 / this number) of all records loses its own oldest first.
   */
  actorPartMax: 8,
  /** Names of fields, and of other writes of the same entry. */
  namesMax: 64,
  textCharactersMax: 256,
} as const

/**
 * Format of a full block: one packed text, in which a record takes about 150 bytes of text and 40
 * bytes of memory. As an object it would take 1,500.
 */
interface Block {
  readonly key: string
  readonly packed: Uint8Array
  readonly lastAtMs: number
  readonly lanes: Lanes
  /** Number of records of each actor, by its name as stored. */
  readonly counts: ReadonlyMap<string, number>
  readonly size: number
}

const PREFIX = 'a/'
const KEY_CHARACTERS = 11

function keyOf(index: number): string {
  return PREFIX + index.toString(36).padStart(KEY_CHARACTERS, '0')
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, auditLimits.textCharactersMax))
}

function quotedNames(names: readonly string[]): string {
  if (names.length === 0) return '[]'
  return `[${names.slice(0, auditLimits.namesMax).map(quoted).join(',')}]`
}

/** One line for a record. JSON contains no raw line breaks, so a line break separates records. */
function lineOf(record: AuditRecord, who: string): string {
  const { index, atMs, action, entity, entityId, fields, also, outcome, reason } = record
  // Names of the program need no escaping.
  const what = `"${action}","${entity}",${quoted(entityId)},"${outcome}"`
  // Few records have a reason; lines without one keep their earlier form.
  const why = reason === '' ? '' : `,${quoted(reason)}`
  return `[${index},${atMs},${who},${what},${quotedNames(fields)},${quotedNames(also)}${why}]`
}

function recordOf(line: string): EntityRecord {
  const [index, at, actor, actorName, session, address, action, entity, entityId, ...rest] =
    JSON.parse(line) as Json[]
  const [outcome, fields, also, reason = ''] = rest
  const atMs = Number(at)
  const base = { id: String(index), createdAt: atMs, updatedAt: atMs, revision: Number(index) }
  const who = { actor, actorName, session, address } as Record<string, Json>
  const what = { action, entity, entityId, outcome, fields, also, reason } as Record<string, Json>
  return { ...base, index: Number(index), at: atMs, ...who, ...what }
}

/**
 * A small compression window: a block has about 10 KiB, and the usual window would take 256 KiB for
 * each.
 */
const PACKING = { level: 1, windowBits: 13, memLevel: 6, chunkSize: 4096 } as const

/**
 * Compressed text. Releases of zlib produce different bytes, so it stays in this process and is not
 * part of a digest.
 */
function pack(text: string): Uint8Array {
  return Uint8Array.from(deflateRawSync(text, PACKING))
}

function linesOf({ packed }: Block): string[] {
  return inflateRawSync(packed).toString('utf8').split('\n')
}

const ACTOR = /^\[\d+,\d+,("(?:[^"\\]|\\.)*")/

function actorOf(line: string): string {
  return ACTOR.exec(line)?.[1] ?? ''
}

function indexOf(line: string): number {
  return Number(line.slice(1, line.indexOf(',')))
}

function timeOf(line: string): number {
  return Number(line.slice(line.indexOf(',') + 1, line.indexOf(',', line.indexOf(',') + 1)))
}

/**
 * Audit log: the latest writes in log order, from all callers and with every outcome. The digest,
 * the key and the storage are computed per block, because doing so per entry would be expensive.
 */
export class AuditLog {
  readonly #digest: SetDigest
  #blocks: Block[] = []
  /** Number of records in all full blocks. */
  #size = 0
  readonly #counts = new Map<string, number>()
  /** Lines of the last block, which is not full. */
  #lines: string[] = []
  #openKey = ''
  /** Blocks by key whose content the store does not have yet. */
  readonly #changed = new Map<string, string | null>()
  /** Serialized fields of the last caller, cached because most callers write more than once. */
  #who = { actor: '', actorName: '', session: '', address: '', text: '"","","",""' }

  /** @param digest the sum to which full blocks are added. */
  constructor(digest: SetDigest) {
    this.#digest = digest
  }

  get size(): number {
    return this.#size + this.#lines.length
  }

  /** @returns the number of characters that it takes in the store. */
  add(record: AuditRecord): number {
    if (this.#lines.length === 0) this.#openKey = keyOf(record.index)
    const line = lineOf(record, this.#whoOf(record))
    this.#lines.push(line)
    if (this.#lines.length === auditLimits.blockRecords) this.#close(record.atMs)
    return line.length
  }

  #whoOf({ actor, actorName, session, address }: AuditRecord): string {
    const last = this.#who
    const isSame =
      last.session === session &&
      last.actor === actor &&
      last.address === address &&
      last.actorName === actorName
    if (!isSame) {
      const text = [actor, actorName, session, address].map(quoted).join(',')
      this.#who = { actor, actorName, session, address, text }
    }
    return this.#who.text
  }

  #close(lastAtMs: number): void {
    this.#blocks.push(this.#newBlock(this.#openKey, this.#lines, lastAtMs))
    this.#lines = []
  }

  #newBlock(key: string, lines: readonly string[], lastAtMs: number): Block {
    const text = lines.join('\n')
    const lanes = digestLanes(key, text)
    const counts = new Map<string, number>()
    for (const line of lines) {
      const actor = actorOf(line)
      counts.set(actor, (counts.get(actor) ?? 0) + 1)
    }
    this.#digest.add(lanes)
    this.#changed.set(key, text)
    this.#size += lines.length
    for (const [actor, count] of counts) this.#addCount(actor, count)
    return { key, packed: pack(text), lastAtMs, lanes, counts, size: lines.length }
  }

  #forgetBlock({ key, lanes, counts, size }: Block): void {
    this.#digest.remove(lanes)
    this.#changed.set(key, null)
    this.#size -= size
    for (const [actor, count] of counts) this.#addCount(actor, -count)
  }

  #addCount(actor: string, more: number): void {
    const count = (this.#counts.get(actor) ?? 0) + more
    if (count > 0) this.#counts.set(actor, count)
    else this.#counts.delete(actor)
  }

  /**
   * Loads a block written by `takeChanged`, in the order of the keys.
   * @throws on a malformed block.
   */
  load(key: string, text: string): void {
    const lines = text.split('\n')
    const { index } = recordOf(lines[0] ?? '')
    const isWhole = lines.length <= auditLimits.blockRecords && keyOf(Number(index)) === key
    if (!isWhole || key <= this.#openKey) {
      throw new Error(`the store holds a malformed block of the audit: ${key.slice(0, 80)}`)
    }
    // If an actor's records were removed, a block before the last one may be partial.
    if (this.#lines.length > 0) {
      this.#close(timeOf(this.#lines.at(-1) ?? ''))
      this.#changed.delete(this.#openKey)
    }
    this.#openKey = key
    this.#lines = lines
    if (lines.length < auditLimits.blockRecords) return
    this.#close(timeOf(lines.at(-1) ?? ''))
    this.#changed.delete(key)
  }

  /**
   * Drops the oldest block if it is too old, or if enough records remain without it. In the latter
   * case, an actor with too many records loses its own oldest records first.
   * @param isByActor true from feature level 2.
   * @returns the number of characters that it changes in the store.
   */
  forget(logTimeMs: number, isByActor: boolean): number {
    const oldest = this.#blocks[0]
    if (oldest === undefined) return 0
    const isTooOld = oldest.lastAtMs < logTimeMs - auditLimits.ageMsMax
    if (!isTooOld && this.size - auditLimits.blockRecords < auditLimits.recordsMax) return 0
    const busiest = isTooOld || !isByActor ? null : this.#busiest()
    // @guard audit-pushed-out--own
    if (busiest !== null) return this.#forgetOldestOf(busiest)
    this.#blocks.shift()
    this.#forgetBlock(oldest)
    return oldest.key.length
  }

  /** The actor with the most records, if it exceeds its share; null: none does. */
  #busiest(): string | null {
    let found: string | null = null
    let most = auditLimits.recordsMax / auditLimits.actorPartMax
    for (const [actor, count] of this.#counts) {
      // Ties are decided by name, because the order of a map may differ between processes.
      if (count > most || (count === most && found !== null && actor < found)) {
        found = actor
        most = count
      }
    }
    return found
  }

  /** Drops the oldest record of one actor from a block. */
  #forgetOldestOf(actor: string): number {
    const found = this.#blocks.findIndex(({ counts }) => counts.has(actor))
    const at = found === this.#blocks.length - 1 ? 0 : found
    const block = this.#blocks[at]
    if (block === undefined) return 0
    this.#forgetBlock(block)
    const left = at === found ? linesOf(block).filter((line) => actorOf(line) !== actor) : []
    const [first] = left
    if (first === undefined) {
      this.#blocks.splice(at, 1)
      return block.key.length
    }
    this.#blocks[at] = this.#newBlock(keyOf(indexOf(first)), left, timeOf(left.at(-1) ?? ''))
    return left.reduce((sum, line) => sum + line.length, 0)
  }

  /** Returns the blocks that the store lacks; null for a removed one. */
  takeChanged(): (readonly [string, string | null])[] {
    const changed = [...this.#changed]
    this.#changed.clear()
    if (this.#lines.length > 0) changed.push([this.#openKey, this.#lines.join('\n')])
    return changed
  }

  /** Hash lanes that are summed over full blocks. */
  *lanes(): Generator<Lanes> {
    for (const { lanes } of this.#blocks) yield lanes
  }

  /** Adds the records of the last block, which is not full. */
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
            .map(recordOf),
        )
      skip = Math.max(0, skip - count)
    }
    return page
  }

  /** All current records, the newest first; records written during the walk are not among them. */
  *newestFirst(): Generator<EntityRecord> {
    for (const { lines } of this.#newestBlocks()) for (const line of lines()) yield recordOf(line)
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
