import type { KindName } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import type { Outcome } from '../../ports/proposer.ts'

/**
 * Rights that policies give: an identity may dial or bind a service, and use an edge router; a
 * service may be reached through an edge router.
 */
export const accessRights = ['dial', 'bind', 'router', 'serviceRouter'] as const
export type AccessRight = (typeof accessRights)[number]

/** One previewed write; it is not executed. */
export interface PreviewedWrite {
  readonly mode: 'create' | 'replace' | 'patch' | 'delete'
  readonly entity: KindName
  readonly id: string
  /** Fields as in a command; empty for a deletion. */
  readonly fields: JsonObject
}

/** Caller whose rights apply to the previewed writes. */
export interface PreviewCaller {
  readonly isAdmin: boolean
  readonly permissions: readonly string[]
}

/** Pairs that gain a right, or lose it. */
export interface PairChanges {
  readonly right: AccessRight
  readonly change: 'given' | 'taken'
  readonly count: number
  /**
   * Pairs of ids: an identity or a service, and then the record to which it has the right. All
   * controllers return the same order.
   */
  page(offset: number, limit: number): readonly (readonly [left: string, other: string])[]
}

/** A service policy that exists before and after, with different posture checks. */
export interface CheckChanges {
  readonly policyId: string
  readonly given: readonly string[]
  readonly taken: readonly string[]
  /** Checks that the policy keeps, but whose requirements differ. */
  readonly written: readonly string[]
}

export interface AccessDifference {
  /** Two entries per right: pairs that gain it and pairs that lose it. */
  readonly pairs: readonly PairChanges[]
  readonly checks: readonly CheckChanges[]
  /** All records that the writes change, also as a consequence, of kinds with a history. */
  readonly changes: readonly RecordChange[]
  /** The record after the writes, or before them if they delete it. */
  record(kind: KindName, id: string): EntityRecord | undefined
  /** Whether the writes create the record. */
  isNew(kind: KindName, id: string): boolean
}

/** The outcome of previewed writes. */
export type AccessPreview =
  | {
      readonly outcome: 'refused'
      readonly at: number
      readonly refusal: Extract<Outcome, { ok: false }>
    }
  /** The writes would change more records than a preview allows. */
  | { readonly outcome: 'tooMany' }
  | {
      readonly outcome: 'judged'
      /**
       * Computes the difference in steps: each `next` does a bounded part of the work. Null:
       * records have changed meanwhile, and the caller must start again.
       * @throws {Problem} COULD_NOT_VALIDATE when the cost exceeds its limit.
       */
      readonly difference: Generator<void, AccessDifference | null>
    }
