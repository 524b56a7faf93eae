import type { KindName } from '../../entities/kind-records.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import type { Index } from '../../raft/types.ts'
import type { AuditedWrite } from './audit.ts'

/** A write whose fields and references have been validated. */
export interface ValidatedWrite<R extends EntityRecord = EntityRecord> {
  readonly id: string
  /** The record before the write; undefined for a creation. */
  readonly before: R | undefined
  /** For an update, all fields of the record; for a creation, only the given fields. */
  readonly after: Partial<R>
}

/** A write after it was applied, with the record before and after it. */
export interface CompletedWrite<R extends EntityRecord = EntityRecord> {
  /** The record before the write; undefined for a creation. */
  readonly before: R | undefined
  readonly after: R
}

/**
 * Operations for the consequences of a write. The consequences are part of the same log entry and
 * cannot be refused.
 */
export interface WriteConsequences {
  readonly state: State
  readonly context: CommandContext
  /**
   * Writes a whole record. The log entry determines its base fields, but an existing record keeps
   * `createdAt`.
   */
  put(kind: KindName, id: string, fields: Readonly<Record<string, Json>>): void
  /**
   * Removes a record and its dependents; does nothing if the record does not exist. The rules for
   * deletions by callers do not apply.
   */
  remove(kind: KindName, id: string): void
}

/**
 * Rules for writes of one kind that depend on other records (in addition to uniqueness and
 * references), and the consequences of these writes. The state machine evaluates both when it
 * applies an entry, so they must depend only on the state and that entry.
 */
export interface KindRules<R extends EntityRecord = EntityRecord> {
  /** Reason why a write is refused; null when it is allowed. */
  judgeWrite?(state: State, write: ValidatedWrite<R>, context: CommandContext): Outcome | null
  /**
   * Reason why a caller may not delete the record; null if it may. Not called for cascading
   * deletions.
   */
  judgeDelete?(state: State, record: R, context: CommandContext): Outcome | null
  afterWrite?(written: CompletedWrite<R>, consequences: WriteConsequences): void
  /**
   * Called after a deletion by a caller or a cascade. Called for the kind that owns the table, not
   * for kinds that are views of the same table.
   */
  afterDelete?(record: R, consequences: WriteConsequences): void
}

/**
 * Facts about a command that are not in the state: index, time and actor. All of them come from the
 * log.
 */
export interface CommandContext {
  readonly index: Index
  /** Log time, UTC ms. It decreases along the log only when an operator resets log time. */
  readonly logTimeMs: number
  /** The API session in which the request was made; '' without a session. */
  readonly sessionId: string
  /** Id of the router whose certificate authorizes the command; '' if none does. */
  readonly routerId: string
  /** Whether the caller's rights are limited. */
  readonly authority: CommandAuthority
  /**
   * Permissions of the caller. A caller with limited authority can act only on identities whose
   * permissions it also has.
   */
  readonly held: readonly string[]
  /**
   * Records that the entry writes for its caller, or would have written if it had not been refused;
   * they appear in the audit record.
   */
  readonly touched: AuditedWrite[]
  /** Returns the rules of a kind in addition to its schema, and the consequences of its writes. */
  readonly rulesOf: (kind: KindName) => KindRules
}

/**
 * `full`: an administrator, a session that acts on its own identity, the system, or a caller with
 * another credential, such as an enrollment token or a router's certificate. `limited`: an identity
 * with permissions, which cannot act on identities with more rights.
 */
export type CommandAuthority = 'full' | 'limited'
