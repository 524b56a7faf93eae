/**
 * Format in which the log contains the records of a backup: blocks of lines `kind TAB stored JSON`.
 * Each block is compressed separately. JSON contains no raw tabs or line breaks.
 */
import type { KindName } from '../../entities/kind-records.ts'
import { isKindName } from '../../entities/registry.ts'
import { deflateRawSync, inflateRawSync } from 'node:zlib'

import type { Json } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { DigestLanes } from './digest.ts'
import { restoreLimits } from './restore-limits.ts'

/** A record with the fields of its table, its stored text and the digest of that text. */
export interface NormalizedRecord {
  readonly kind: KindName
  readonly record: EntityRecord
  readonly value: string
  readonly lanes: DigestLanes
}

/** Converts the values of a record to a record with exactly the fields of its table. */
export type RecordNormalizer = (kind: KindName, values: RecordValues) => NormalizedRecord

export type RecordValues = Readonly<Record<string, Json>> & { readonly id: string }

const ID_CHARACTERS_MAX = 512

/** A record as one line of a block. */
export function blockLine(kind: KindName, value: string): string {
  return `${kind}\t${value}`
}

/** Compresses lines into blocks. */
export function* compressLines(lines: Iterable<string>): Generator<Uint8Array> {
  let held: string[] = []
  let characters = 0
  for (const line of lines) {
    held.push(line)
    characters += line.length
    if (characters < restoreLimits.blockCharacters) continue
    yield packed(held)
    held = []
    characters = 0
  }
  if (held.length > 0) yield packed(held)
}

function packed(lines: readonly string[]): Uint8Array {
  return Uint8Array.from(deflateRawSync(Buffer.from(lines.join('\n'), 'utf8')))
}

export interface DecodedBlock {
  readonly records: readonly NormalizedRecord[]
  /** Length of the uncompressed text in bytes. */
  readonly bytes: number
}

/**
 * Decodes a block.
 * @param kinds kinds that the block may contain.
 * @returns null for an invalid block.
 */
export function decodeBlock(
  bytes: Uint8Array,
  kinds: ReadonlySet<KindName>,
  shape: RecordNormalizer,
): DecodedBlock | null {
  const text = inflated(bytes)
  if (text === null) return null
  const records: NormalizedRecord[] = []
  for (const line of text.toString('utf8').split('\n')) {
    const record = recordIn(line, kinds, shape)
    if (record === null) return null
    records.push(record)
  }
  return { records, bytes: text.length }
}

function inflated(bytes: Uint8Array): Buffer | null {
  try {
    return inflateRawSync(bytes, { maxOutputLength: restoreLimits.blockTextBytesMax })
  } catch {
    return null
  }
}

function recordIn(
  line: string,
  kinds: ReadonlySet<KindName>,
  shape: RecordNormalizer,
): NormalizedRecord | null {
  const end = line.indexOf('\t')
  const kind = line.slice(0, Math.max(0, end))
  if (!isKindName(kind) || !kinds.has(kind)) return null
  const values = valuesIn(line.slice(end + 1))
  return values === null ? null : shape(kind, values)
}

function valuesIn(json: string): RecordValues | null {
  let found: unknown
  try {
    found = JSON.parse(json)
  } catch {
    return null
  }
  const { id } = { ...(found as Partial<Record<string, unknown>> | null) }
  const isUsable = typeof id === 'string' && id.length > 0 && id.length <= ID_CHARACTERS_MAX
  return isUsable ? (found as RecordValues) : null
}
