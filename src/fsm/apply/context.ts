import type { KindName } from '../../entities/kind-records.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import type { Index } from '../../raft/types.ts'
import type { TouchedRecord } from './audit.ts'

/** A write whose fields and references are valid. */
export interface AllowedWrite<R extends EntityRecord = EntityRecord> {
  readonly id: string
  /** Undefined for a creation. */
  readonly before: R | undefined
  /** All fields of an updated record; only the given fields of a created one. */
  readonly after: Partial<R>
}

/** A completed write. */
export interface CompletedWrite<R extends EntityRecord = EntityRecord> {
  /** Undefined for a creation. */
  readonly before: R | undefined
  readonly after: R
}

/**
 * Operations for the consequences of a write. They belong to the same entry and cannot be refused.
 */
export interface Consequences {
  readonly state: State
  readonly context: CommandContext
  /** Writes a whole record. The entry determines its base fields. */
  put(kind: KindName, id: string, fields: Readonly<Record<string, Json>>): void
  /**
   * Removes a record and its dependents; does nothing if it does not exist. The rules for deletions
   * by callers do not apply.
   */
  remove(kind: KindName, id: string): void
}

/**
 * Rules for writes of one kind that depend on other records (in addition to uniqueness and
 * references), and their consequences. They run during apply, so they must depend only on state and
 * entry.
 */
export interface KindRules<R extends EntityRecord = EntityRecord> {
  /** Why a write is refused; null when it is allowed. */
  judgeWrite?(state: State, write: AllowedWrite<R>, context: CommandContext): Outcome | null
  /** Reason why a caller may not delete the record; null if it may. Not called for a cascade. */
  judgeDelete?(state: State, record: R, context: CommandContext): Outcome | null
  afterWrite?(written: CompletedWrite<R>, consequences: Consequences): void
  /**
   * Called after a caller or a cascade has deleted the record. Called for a table, not for its
   * views.
   */
  afterDelete?(record: R, consequences: Consequences): void
}

/**
 * Facts about a command besides the state: index, time and actor. All of them come from the log.
 */
export interface CommandContext {
  readonly index: Index
  /** UTC ms; never decreases along the log. */
  readonly logTimeMs: number
  /** The API session of the request; '' without one. */
  readonly sessionId: string
  /** The router whose certificate authorizes the command; '' for none. */
  readonly routerId: string
  /** Extent of the caller's rights. */
  readonly authority: CommandAuthority
  /**
   * Permissions of the caller. A limited authority can act only on identities with fewer
   * permissions.
   */
  readonly held: readonly string[]
  /** Records that the entry has written for its caller, for the audit record. */
  readonly touched: TouchedRecord[]
  /** Rules of a kind beyond its schema, and the consequences of its writes. */
  readonly rulesOf: (kind: KindName) => KindRules
}

/**
 * `full`: an administrator, a session that acts on its own identity, or the system actor.
 * `limited`: an identity with permissions, which cannot act on identities with more rights.
 */
export type CommandAuthority = 'full' | 'limited'
