import type { KindName } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import type { Outcome } from '../../ports/proposer.ts'

/**
 * Rights that policies grant: an identity may dial a service, bind a service, or use an edge
 * router; a service may be reached through an edge router.
 */
export const accessRights = ['dial', 'bind', 'router', 'serviceRouter'] as const
export type AccessRight = (typeof accessRights)[number]

/** One write in a preview; it is not executed. */
export interface PreviewedWrite {
  readonly mode: 'create' | 'replace' | 'patch' | 'delete'
  readonly entity: KindName
  readonly id: string
  /** Fields as a command contains them; empty for a deletion. */
  readonly fields: JsonObject
}

/** Caller whose rights are used to check the previewed writes. */
export interface PreviewCaller {
  readonly isAdmin: boolean
  readonly permissions: readonly string[]
}

/** Pairs of records that gain a right, or that lose it. */
export interface PairChanges {
  readonly right: AccessRight
  readonly change: 'given' | 'taken'
  readonly count: number
  /**
   * Pairs of ids: an identity or a service, then the record on which it has the right. All
   * controllers return the same order.
   */
  page(offset: number, limit: number): readonly (readonly [left: string, other: string])[]
}

/**
 * A service policy that exists before and after the writes. The writes change which posture checks
 * it requires, or what these checks require.
 */
export interface PostureCheckChanges {
  readonly policyId: string
  readonly given: readonly string[]
  readonly taken: readonly string[]
  /**
   * Checks that the policy requires before and after the writes, and whose own requirements the
   * writes change.
   */
  readonly written: readonly string[]
}

export interface AccessDifference {
  /** Two entries per right: the pairs that gain it and the pairs that lose it. */
  readonly pairs: readonly PairChanges[]
  readonly checks: readonly PostureCheckChanges[]
  /**
   * All changes to records of kinds with a history, including changes that are consequences of the
   * writes.
   */
  readonly changes: readonly RecordChange[]
  /** The record after the writes; if the writes delete it, the record before them. */
  record(kind: KindName, id: string): EntityRecord | undefined
  /** Whether the previewed writes create the record. */
  isNew(kind: KindName, id: string): boolean
}

/** The result of previewing writes. */
export type AccessPreview =
  | {
      readonly outcome: 'refused'
      readonly at: number
      readonly refusal: Extract<Outcome, { ok: false }>
    }
  /** The writes and their consequences would change more records than a preview allows. */
  | { readonly outcome: 'tooMany' }
  | {
      readonly outcome: 'judged'
      /**
       * Computes the difference in steps: each `next` does a limited part of the work. The result
       * is null if records changed meanwhile; the caller must then start over.
       * @throws {Problem} COULD_NOT_VALIDATE when the cost exceeds its limit.
       */
      readonly difference: Generator<void, AccessDifference | null>
    }
