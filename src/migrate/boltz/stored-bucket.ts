import { Buffer } from 'node:buffer'

import type { Json } from '../../lib/text/canonical-json.ts'
import type { BoltFile, BoltBucket, VisitedPages } from '../bolt/bolt-file.ts'
import { MigrationFault } from '../fault.ts'
import { migrateLimits } from '../limits.ts'
import {
  decodeTypedValue,
  decodeUtf8,
  INT32_BYTE,
  TEXT_BYTE,
  type TypedValue,
} from './typed-value.ts'

/** A key and its value, or the entries of the bucket under this key. */
export interface StoredEntry {
  readonly key: Uint8Array
  readonly value: Uint8Array
  /** null if the entry has a value. */
  readonly entries: readonly StoredEntry[] | null
}

/** Key under which the bucket of a list stores the list's length. */
const LIST_SIZE = Buffer.from('__list__size__36484231-110c-4767-afe2-01b6e3db107a')

/** Remaining number of entries and bytes that the record may have. */
interface Allowance {
  entries: number
  bytes: number
}

/**
 * Reads a record into memory.
 * @param isSkipped selects the paths of buckets that are skipped: links, which are derived from
 * other records and may be long.
 * @throws {MigrationFault} TOO_LARGE, DAMAGED.
 */
export function readStoredEntries(
  file: BoltFile,
  bucket: BoltBucket,
  visited: VisitedPages,
  isSkipped: (path: readonly string[]) => boolean,
): StoredEntry[] {
  const allowance: Allowance = {
    entries: migrateLimits.recordEntriesMax,
    bytes: migrateLimits.recordBytesMax,
  }
  const read = (inner: BoltBucket, path: readonly string[]): StoredEntry[] => {
    const entries: StoredEntry[] = []
    for (const { key, value, bucket: below } of file.entries(inner, visited)) {
      take(allowance, key.length + value.length)
      const name = Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')
      if (below === null) entries.push({ key, value, entries: null })
      else if (!isSkipped([...path, name])) {
        entries.push({ key, value, entries: read(below, [...path, name]) })
      }
    }
    return entries
  }
  return read(bucket, [])
}

function take(allowance: Allowance, bytes: number): void {
  allowance.entries -= 1
  allowance.bytes -= bytes
  if (allowance.entries >= 0 && allowance.bytes >= 0) return
  throw new MigrationFault('TOO_LARGE', 'it is larger than a record may be')
}

/** The strings of a set, in the order of their bytes; null if the entries are not a set. */
export function decodeTextSet(entries: readonly StoredEntry[]): string[] | null {
  const texts: string[] = []
  for (const { key, value, entries: below } of entries) {
    const text = key[0] === TEXT_BYTE ? decodeUtf8(key.subarray(1)) : null
    if (text === null || below !== null || value.length > 0) return null
    texts.push(text)
  }
  return texts
}

/**
 * Converts a map, list, set or value to JSON; undefined if JSON cannot represent it, or if it is
 * nested too deep.
 */
export function decodeJson(entry: StoredEntry, depth = 0): Json | undefined {
  if (depth > migrateLimits.valueDepthMax) return undefined
  const { entries } = entry
  if (entries === null) return scalarJson(decodeTypedValue(entry.value))
  if (entries.some(({ key }) => LIST_SIZE.equals(key))) return listJson(entries, depth)
  const texts = entries.length === 0 ? null : decodeTextSet(entries)
  if (texts !== null) return texts
  return convertMapToJson(entries, depth)
}

/** Converts the members of a map to JSON; undefined if a member cannot be converted. */
export function convertMapToJson(
  entries: readonly StoredEntry[],
  depth = 0,
): Readonly<Record<string, Json>> | undefined {
  const members: [string, Json][] = []
  for (const one of entries) {
    const name = decodeUtf8(one.key)
    const value = decodeJson(one, depth + 1)
    if (name === null || value === undefined) return undefined
    members.push([name, value])
  }
  // `fromEntries` instead of assignments, because a member may be named `__proto__`.
  return Object.fromEntries(members)
}

function listJson(entries: readonly StoredEntry[], depth: number): Json | undefined {
  const items = new Map<number, StoredEntry>()
  let size = 0
  for (const one of entries) {
    if (LIST_SIZE.equals(one.key)) {
      const value = decodeTypedValue(one.value)
      if (value.type !== 'int32') return undefined
      size = value.value
      continue
    }
    const index = one.key[0] === INT32_BYTE ? decodeTypedValue(one.key) : null
    if (index?.type !== 'int32') return undefined
    items.set(index.value, one)
  }
  if (size !== items.size) return undefined
  const list: Json[] = []
  for (let at = 0; at < size; at += 1) {
    const item = items.get(at)
    const value = item === undefined ? undefined : decodeJson(item, depth + 1)
    if (value === undefined) return undefined
    list.push(value)
  }
  return list
}

function scalarJson(value: TypedValue): Json | undefined {
  switch (value.type) {
    case 'boolean':
    case 'int32':
    case 'text':
      return value.value
    case 'float64':
      return Number.isFinite(value.value) ? value.value : undefined
    case 'int64': {
      const number = Number(value.value)
      return Number.isSafeInteger(number) ? number : undefined
    }
    case 'nil':
      return null
    case 'time':
      return value.value === null ? null : new Date(value.value).toISOString()
    case 'unknown':
      return undefined
  }
}
