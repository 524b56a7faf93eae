/** How a field of a record is stored. */
export type StoredType =
  | 'text'
  | 'boolean'
  | 'int32'
  | 'int64'
  | 'time'
  /** A set of texts. */
  | 'texts'
  /** A map with values, maps and lists. */
  | 'map'
  /** Bytes without a type. */
  | 'bytes'
  /** Keys with bytes without a type. */
  | 'bytes by key'
  /** A bucket with further fields. */
  | 'section'
  /** A section for each key. */
  | 'sections'
  /** Other records, derived from fields of this one or of the others. */
  | 'links'

/** A field of a store, and what the migration does with it. */
export interface FieldRow {
  readonly type: StoredType
  /** First version of OpenZiti that stores it, after 1.5. */
  readonly since: string
  readonly fate: 'carried' | 'converted' | 'dropped' | 'derived'
  /** Conversion, or reason for dropping; '' if it is carried as it is. */
  readonly how: string
  /** Fields of a section. */
  readonly fields: FieldRows
}

export type FieldRows = Readonly<Record<string, FieldRow>>

interface RowOptions {
  readonly since?: string
  readonly fields?: FieldRows
}

function row(type: StoredType, fate: FieldRow['fate'], how: string, options: RowOptions): FieldRow {
  return { type, fate, how, since: options.since ?? '1.5', fields: options.fields ?? {} }
}

export function carried(type: StoredType, options: RowOptions = {}): FieldRow {
  return row(type, 'carried', '', options)
}

/** @param how one clause: the conversion. */
export function converted(type: StoredType, how: string, options: RowOptions = {}): FieldRow {
  return row(type, 'converted', how, options)
}

/** @param why one clause: nothing is lost by it. */
export function dropped(type: StoredType, why: string, options: RowOptions = {}): FieldRow {
  return row(type, 'dropped', why, options)
}

/** Links are not even read. */
export const linkRow: FieldRow = row('links', 'derived', 'follows from other fields', {})

/** Fields of all records but enrollments. */
export const baseRows: FieldRows = {
  createdAt: converted('time', 'to milliseconds'),
  updatedAt: converted('time', 'to milliseconds'),
  tags: carried('map'),
  isSystem: carried('boolean'),
}
