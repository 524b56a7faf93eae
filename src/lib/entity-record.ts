import type { Json } from './text/canonical-json.ts'

/**
 * A record of the replicated state: the base fields and, beside them, the stored fields of its
 * descriptor. Frozen in practice: a change makes a new record. Times are UTC ms of log time; the
 * wire shows them as RFC 3339.
 */
export interface EntityRecord {
  readonly id: string
  readonly createdAt: number
  readonly updatedAt: number
  /** Log index of the entry that last changed it. */
  readonly revision: number
  readonly [field: string]: Json
}
