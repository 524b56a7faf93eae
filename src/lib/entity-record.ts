import type { Json } from './text/canonical-json.ts'

/** Base fields of every record. Times are UTC ms of log time; the API shows them as RFC 3339. */
export interface BaseRecordFields {
  readonly id: string
  readonly createdAt: number
  readonly updatedAt: number
  /** Index of the log entry that last changed the record. */
  readonly revision: number
}

/**
 * A record of the replicated state, of any kind: the base fields and the stored fields that the
 * descriptor of its kind lists. The type for one kind is `RecordOf` of
 * `src/entities/kind-records.ts`. Treat a record as immutable: a change creates a new record.
 */
export interface EntityRecord extends BaseRecordFields {
  readonly [field: string]: Json
}
