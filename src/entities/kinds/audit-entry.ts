import { defineEntity } from '../define-entity.ts'
import { integer, text, texts, timestampField } from '../fields.ts'

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
    index: integer(),
    /** Identity id, `controller:ID` for a controller, or `uid:N (name)` for a user of its host. */
    actor: text(),
    /** Name that the actor had when the entry was written. */
    actorName: text(),
    session: text(),
    address: text(),
    /**
     * `create`, `replace`, `patch`, `delete`, or the name of another command, such as
     * `identity-disable`.
     */
    action: text(),
    entity: text(),
    entityId: text(),
    /** Name of the record after the write, or before its deletion. */
    entityName: text(),
    /** Names of the fields that an update changed, never their values. */
    fields: texts(),
    /** Other writes in the same log entry, such as `create enrollment <id>`. */
    also: texts(),
    /**
     * `done`, the code of the refusal, or `requested` for an action that is logged before it is
     * carried out.
     */
    outcome: text(),
    reason: text(),
    /** JSON of the record's fields before and after the write. */
    change: text(),
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
