/** How the database encodes a field. */
export type StoredFieldType =
  | 'text'
  | 'boolean'
  | 'int32'
  | 'int64'
  | 'time'
  /** A set of strings. */
  | 'texts'
  /** A map that contains values, maps and lists. */
  | 'map'
  /** Bytes without a type. */
  | 'bytes'
  /** Keys whose values are bytes without a type. */
  | 'bytes by key'
  /** A bucket that contains further fields. */
  | 'section'
  /** A bucket with one section for each key. */
  | 'sections'
  /**
   * Links to other records. OpenZiti derives them from fields of this record or of the linked
   * records.
   */
  | 'links'

/** A field in a store, and how the migration handles it. */
export interface StoredFieldRule {
  readonly type: StoredFieldType
  /** OpenZiti version that introduced the field; `1.5` also for older fields. */
  readonly since: string
  readonly fate: 'carried' | 'converted' | 'dropped' | 'derived'
  /**
   * How the field is converted, or the reason why it is dropped or not read; '' if it is migrated
   * unchanged.
   */
  readonly how: string
  /** Fields inside this field, if it is a section; otherwise empty. */
  readonly fields: StoredFieldRules
}

export type StoredFieldRules = Readonly<Record<string, StoredFieldRule>>

interface RowOptions {
  readonly since?: string
  readonly fields?: StoredFieldRules
}

function row(
  type: StoredFieldType,
  fate: StoredFieldRule['fate'],
  how: string,
  options: RowOptions,
): StoredFieldRule {
  return { type, fate, how, since: options.since ?? '1.5', fields: options.fields ?? {} }
}

export function unchangedFieldRule(
  type: StoredFieldType,
  options: RowOptions = {},
): StoredFieldRule {
  return row(type, 'carried', '', options)
}

/** @param how one clause that describes the conversion. */
export function convertedFieldRule(
  type: StoredFieldType,
  how: string,
  options: RowOptions = {},
): StoredFieldRule {
  return row(type, 'converted', how, options)
}

/** @param why one clause that explains why nothing is lost. */
export function droppedFieldRule(
  type: StoredFieldType,
  why: string,
  options: RowOptions = {},
): StoredFieldRule {
  return row(type, 'dropped', why, options)
}

/** Rule for links, which the migration does not read. */
export const linkFieldRule: StoredFieldRule = row(
  'links',
  'derived',
  'follows from other fields',
  {},
)

/** Fields that all records have, except enrollments. */
export const baseFieldRules: StoredFieldRules = {
  createdAt: convertedFieldRule('time', 'to milliseconds'),
  updatedAt: convertedFieldRule('time', 'to milliseconds'),
  tags: unchangedFieldRule('map'),
  isSystem: unchangedFieldRule('boolean'),
}
