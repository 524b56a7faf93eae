import type { ProblemCode } from '../lib/problems.ts'
import type { RefusalCause } from '../lib/refusal-reason.ts'
import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { TraceContext } from '../lib/trace-context.ts'

/**
 * Audit record of one entry: author, change and outcome. Log lines contain names of fields, never
 * their values.
 */
export interface AuditRecord {
  readonly index: number
  /** Log time, UTC ms. */
  readonly atMs: number
  /**
   * Id of the identity; `controller:ID` for a controller itself; `uid:N (name)` for a user of its
   * host; `enrollment:ID`, `ca:ID`, `router:ID` or `signer:ID` for a caller without a session.
   */
  readonly actor: string
  readonly actorName: string
  /** Id of the API session, not its token; '' without one. */
  readonly session: string
  readonly address: string
  readonly action: string
  readonly entity: string
  readonly entityId: string
  /**
   * Name of the record after the entry, or before its deletion; '' for a record without a name, for
   * a kind without a history, and below the feature level `HISTORY_FEATURE_LEVEL`.
   */
  readonly entityName: string
  readonly fields: readonly string[]
  readonly also: readonly string[]
  /**
   * `done`; an error code, with which the state machine refused the entry or an action on the
   * cluster failed; or `requested` for an action that the log records before the action starts.
   */
  readonly outcome: string
  /** The reason that the state machine or the caller gave; otherwise ''. */
  readonly reason: string
  /**
   * JSON list of the changes (`AuditedChange`), without secrets, the change of the main record
   * first. If not all changes fit, the list ends with the number of the omitted ones, or the text
   * is `"TOO_LARGE"`; '' if no changes are stored for the entry.
   */
  readonly change: string
}

/** A record that an entry changed, as the audit log stores it. */
export interface AuditedChange {
  /** Kind that owns the table in which the record is stored. */
  readonly kind: string
  readonly id: string
  /** Name of the record after the entry or, if the entry deleted the record, before it. */
  readonly name: string
  /**
   * Values of the changed fields before the entry, or all fields of a deleted record; null: the
   * entry created the record.
   */
  readonly before: JsonObject | null
  /**
   * Values of the changed fields after the entry, or all fields of a created record; null: the
   * entry deleted the record.
   */
  readonly after: JsonObject | null
  /** True if the entry also changed fields whose values the audit log never stores. */
  readonly isPartial: boolean
}

/**
 * A write that a controller refused before proposing it, because its author has no right to make
 * it, or because the credentials of a log-in or an enrollment are invalid.
 */
export interface RefusedWrite {
  /** Name of the caller in audit records; '' for an unauthenticated caller. */
  readonly actor: string
  readonly actorName: string
  readonly session: string
  readonly address: string
  /** Id of the operation in the OpenAPI documents. */
  readonly operation: string
  readonly outcome: ProblemCode
  /** Reason why a log-in was refused. The caller does not receive this reason. */
  readonly refusal?: RefusalCause
  /** Trace id of the refused request (src/lib/trace-context.ts). */
  readonly traceId: string
}

/** A line of the access log. */
interface AnsweredRequest {
  readonly method: string
  /** Id of the operation; `none` for a path without an operation. */
  readonly operation: string
  readonly status: number
  readonly tookMs: number
  readonly address: string
  readonly trace: () => TraceContext
  /**
   * True if the caller requested a trace, so that the access log contains the request at every log
   * level; otherwise only at the level debug.
   */
  readonly isTraced: boolean
}

/**
 * Receives the writes that this controller proposed, the writes that it refused, and the requests
 * that it answered. The methods never throw and never wait.
 */
export interface AuditTrail {
  /**
   * Called after this controller has applied an entry that it proposed, in log order; not called
   * during a quarantine.
   * @param traceId trace id of the request, if the request still waits for the entry.
   */
  applied(record: AuditRecord, traceId?: string): void
  refused(write: RefusedWrite): void
  /** Called when the response to a request begins, also if it is a refusal. */
  answered(request: AnsweredRequest): void
}
