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
    /**
     * Names of the fields that an update changed, or that a refused update would have set; never
     * their values.
     */
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
     * JSON list of the changes of the log entry, that of this record first. Each has the values
     * before and after: of the changed fields for an update, otherwise of all stored fields. A
     * number at the end counts changes that did not fit. `"TOO_LARGE"` or `"DROPPED"` if the values
     * are not kept; '' if no change is stored.
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
