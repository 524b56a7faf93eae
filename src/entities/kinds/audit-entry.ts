import { defineEntity } from '../define-entity.ts'
import { integerField, textField, textListField, timestampField } from '../fields.ts'

/**
 * A write in the audit log. Audit entries are not stored in a table; only lists and filters treat
 * them as a kind.
 */
export const auditEntry = defineEntity({
  name: 'auditEntry',
  plural: 'auditEntries',
  operations: {},
  fields: {
    /** Log time, UTC ms. */
    at: timestampField(),
    /** Index of the log entry. */
    index: integerField(),
    /**
     * The identity id; for a caller without a session, the presented credential, such as
     * `enrollment:ID`; otherwise `controller:ID`, `uid:N (name)` for a user of a controller's host,
     * `bootstrap` or `restore`.
     */
    actor: textField(),
    /** Name that the actor had when the entry was written. */
    actorName: textField(),
    session: textField(),
    address: textField(),
    /**
     * `create`, `replace`, `patch`, `delete`, the name of another command, such as
     * `identity-disable`, or the name of an action of a controller, such as `set-log-level`.
     */
    action: textField(),
    entity: textField(),
    entityId: textField(),
    /** Name of the record after the write, or before its deletion. */
    entityName: textField(),
    /** Names of the fields that an update changed, never their values. */
    fields: textListField(),
    /** Other writes in the same log entry, such as `create enrollment <id>`. */
    also: textListField(),
    /**
     * `done`, the code of the refusal, or `requested` for an action that is logged before it is
     * carried out.
     */
    outcome: textField(),
    reason: textField(),
    /**
     * JSON list of the recorded changes of the log entry; the change of this record, if recorded,
     * is first. Each change has the values before and after: for an update, only those of the
     * changed fields. The text is `"TOO_LARGE"` or `"DROPPED"` if the values are not kept, and ''
     * without a recorded change.
     */
    change: textField(),
  },
  symbols: [
    'at',
    'index',
    'actor',
    'actorName',
    'action',
    'entity',
    'entityId',
    'entityName',
    'outcome',
    'session',
    'address',
  ],
})
