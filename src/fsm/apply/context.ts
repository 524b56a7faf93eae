import type { KindName } from '../../entities/kind-records.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import type { Index } from '../../raft/types.ts'
import type { TouchedRecord } from './audit.ts'

/** A write that its fields and references allow. */
export interface AllowedWrite<R extends EntityRecord = EntityRecord> {
  readonly id: string
  /** Undefined at create. */
  readonly before: R | undefined
  /** All fields on update; on create only the given ones. */
  readonly after: Partial<R>
}

/** A write that was done. */
export interface CompletedWrite<R extends EntityRecord = EntityRecord> {
  /** Undefined at create. */
  readonly before: R | undefined
  readonly after: R
}

/** Operations for consequences of a write. They belong to the same entry and cannot be refused. */
export interface Consequences {
  readonly state: State
  readonly context: CommandContext
  /** Writes a record whole, system fields included; its base fields are made from the entry. */
  put(kind: KindName, id: string, fields: Readonly<Record<string, Json>>): void
  /**
   * Removes a record with its dependents; does nothing if it does not exist. Guards against
   * deletion by callers do not apply.
   */
  remove(kind: KindName, id: string): void
}

/**
 * Rules for the writes of one kind that depend on other records (beyond uniqueness and references),
 * and their consequences. Apply runs them, so they must depend on state and entry alone.
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
  /** UTC ms; never running back along the log. */
  readonly logTimeMs: number
  /** The API session of the request; '' without one. */
  readonly sessionId: string
  /** The router whose certificate authorizes the command; '' for none. */
  readonly routerId: string
  /** Extent of the caller's rights. */
  readonly authority: CommandAuthority
  /** Permissions of the caller; a limited authority can act only on identities with fewer. */
  readonly held: readonly string[]
  /** Records that the entry has written for its caller, for the audit record. */
  readonly touched: TouchedRecord[]
  /** Rules of a kind beyond its schema, and the consequences of its writes. */
  readonly rulesOf: (kind: KindName) => KindRules
}

/**
 * `full`: an administrator, a session in matters of its identity, or the system actor. `limited`:
 * an identity with a permission, which cannot act on identities with more rights.
 */
export type CommandAuthority = 'full' | 'limited'
