import { assert } from '../../lib/assert.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import { sortTexts } from '../../lib/text/text-order.ts'
import { decodeTextSet, convertMapToJson, type StoredEntry } from '../boltz/stored-bucket.ts'
import { decodeTypedValue, decodeUtf8, type TypedValue } from '../boltz/typed-value.ts'
import type { MigrationFindingKind, MigrationReport } from '../report.ts'
import type { StoredFieldRule, StoredFieldRules, StoredFieldType } from './stored-field-rules.ts'

/** Where a record is in the database, and the report that receives its faults. */
interface RecordPlace {
  readonly store: string
  readonly id: string
  /** The record that contains the section; undefined for a whole record. */
  readonly owner?: StoredRecord
  /** For example `edge.` for the fields of a section. */
  readonly prefix: string
  readonly report: MigrationReport
}

const SHOWN_NAME_CHARACTERS_MAX = 64

/**
 * The fields of an OpenZiti record, read according to the field rules of its store. Reports fields
 * without a rule, and values whose type differs from the type in their rule.
 */
export class StoredRecord {
  readonly store: string
  readonly id: string
  readonly #place: RecordPlace
  readonly #rows: StoredFieldRules
  readonly #entries = new Map<string, StoredEntry>()

  constructor(place: RecordPlace, entries: readonly StoredEntry[], rows: StoredFieldRules) {
    this.store = place.store
    this.id = place.id
    this.#place = place
    this.#rows = rows
    const unknown: string[] = []
    for (const entry of entries) {
      const name = decodeUtf8(entry.key)
      if (name !== null && Object.hasOwn(rows, name)) this.#entries.set(name, entry)
      else unknown.push(name ?? decodeKeyForDisplay(entry.key))
    }
    // Reports unknown fields after the other fields are read, because a finding shows the name of
    // the record.
    for (const name of unknown) this.note('lost', name, 'this field is unknown')
  }

  note(kind: MigrationFindingKind, field: string, reason: string): void {
    const { store, id, owner = this, prefix, report } = this.#place
    const { name } = owner
    const target = { store, id, name, field: field === '' ? '' : prefix + field }
    report.note(kind, target, reason)
  }

  /** Name of the record for findings; '' if it has none. */
  get name(): string {
    const entry = this.#entries.get('name')
    const value = entry?.entries === null ? decodeTypedValue(entry.value) : null
    return value?.type === 'text' ? value.value.slice(0, SHOWN_NAME_CHARACTERS_MAX) : ''
  }

  has(name: string): boolean {
    return this.#entries.has(name)
  }

  /** Whether the store has a field with this name. */
  isKnown(name: string): boolean {
    return Object.hasOwn(this.#rows, name)
  }

  /** A string field; null if it is absent, nil or unreadable. */
  text(name: string): string | null {
    const value = this.#value(name, 'text')
    return value?.type === 'text' ? value.value : null
  }

  flag(name: string, otherwise = false): boolean {
    const value = this.#value(name, 'boolean')
    return value?.type === 'boolean' ? value.value : otherwise
  }

  /** A numeric field of type int32 or int64. */
  integer(name: string, otherwise = 0): number {
    const type = this.#row(name).type === 'int32' ? 'int32' : 'int64'
    const value = this.#value(name, type)
    if (value?.type === 'int32') return value.value
    if (value?.type !== 'int64') return otherwise
    const number = Number(value.value)
    if (Number.isSafeInteger(number)) return number
    this.note('lost', name, 'the number is too large')
    return otherwise
  }

  /** A time, UTC ms; null if it is absent, Go's zero time, or unreadable. */
  time(name: string): number | null {
    const value = this.#value(name, 'time')
    return value?.type === 'time' ? value.value : null
  }

  /** The strings of a stored set, sorted; none if the set is absent or unreadable. */
  texts(name: string): string[] {
    const entries = this.#bucket(name, 'texts')
    const texts = entries === null ? [] : decodeTextSet(entries)
    if (texts !== null) return sortTexts(texts)
    this.note('lost', name, 'it is no set of texts')
    return []
  }

  map(name: string): Readonly<Record<string, Json>> {
    const entries = this.#bucket(name, 'map')
    const map = entries === null ? {} : convertMapToJson(entries)
    if (map !== undefined) return map
    this.note('lost', name, 'it has a value that is no JSON, or is nested too deep')
    return {}
  }

  bytes(name: string): Uint8Array | null {
    const entry = this.#of(name, 'bytes')
    if (entry === null) return null
    if (entry.entries === null) return entry.value
    this.note('lost', name, 'it is a bucket and no value')
    return null
  }

  /** Key and value of each entry in a bucket, as bytes; entries that are buckets are skipped. */
  bytesByKey(name: string): readonly (readonly [Uint8Array, Uint8Array])[] {
    const entries = this.#bucket(name, 'bytes by key') ?? []
    return entries.flatMap(({ key, value, entries: below }) =>
      below === null ? [[key, value] as const] : [],
    )
  }

  /** A section of the record; null if it is absent, or a value instead of a bucket. */
  section(name: string): StoredRecord | null {
    const entries = this.#bucket(name, 'section')
    return entries === null ? null : this.#inner(name, entries)
  }

  /** One section for each key, in the order of the keys. */
  sections(name: string): StoredRecord[] {
    const found: StoredRecord[] = []
    for (const { key, entries } of this.#bucket(name, 'sections') ?? []) {
      const inner = decodeUtf8(key) ?? decodeKeyForDisplay(key)
      if (entries === null) this.note('lost', `${name}.${inner}`, 'it is a value and no bucket')
      else found.push(this.#inner(name, entries, `${name}.${inner}`))
    }
    return found
  }

  #inner(name: string, entries: readonly StoredEntry[], path = name): StoredRecord {
    const { owner = this, prefix } = this.#place
    const place = { ...this.#place, owner, prefix: `${prefix}${path}.` }
    return new StoredRecord(place, entries, this.#row(name).fields)
  }

  #row(name: string): StoredFieldRule {
    const found = this.#rows[name]
    assert(found !== undefined, `${this.store} has no row for ${name}`)
    return found
  }

  #of(name: string, type: StoredFieldType): StoredEntry | null {
    assert(this.#row(name).type === type, `${this.store}: ${name} is not of type ${type}`)
    return this.#entries.get(name) ?? null
  }

  #value(name: string, type: 'text' | 'boolean' | 'int32' | 'int64' | 'time'): TypedValue | null {
    const entry = this.#of(name, type)
    if (entry === null) return null
    const value: TypedValue =
      entry.entries === null ? decodeTypedValue(entry.value) : { type: 'unknown' }
    if (value.type === type) return value
    if (value.type !== 'nil') this.note('lost', name, `it is no value of type ${type}`)
    return null
  }

  #bucket(name: string, type: StoredFieldType): readonly StoredEntry[] | null {
    const entry = this.#of(name, type)
    if (entry === null) return null
    if (entry.entries !== null) return entry.entries
    if (decodeTypedValue(entry.value).type !== 'nil') {
      this.note('lost', name, 'it is a value and no bucket')
    }
    return null
  }
}

/** The first 32 bytes of a key in hexadecimal digits, for a key that is not text. */
export function decodeKeyForDisplay(key: Uint8Array): string {
  return `0x${Buffer.from(key.subarray(0, 32)).toString('hex')}`
}
