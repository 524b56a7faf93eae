import type { Json } from './text/canonical-json.ts'

/**
 * A record of the replicated state: the base fields and the stored fields of its descriptor. Treat
 * it as immutable: a change creates a new record. Times are UTC ms of log time; the API shows them
 * as RFC 3339.
 */
export interface EntityRecord {
  readonly id: string
  readonly createdAt: number
  readonly updatedAt: number
  /** Log index of the entry that last changed it. */
  readonly revision: number
  readonly [field: string]: Json
}
