import type { NamedSchema } from '../../entities/operations.ts'
import { nullableSchema } from '../../entities/nested-schemas.ts'
import {
  arraySchema,
  closedObjectSchema,
  booleanSchema,
  textSchema,
} from '../../entities/response-schemas.ts'
import { accessPreviewResponseSchema } from '../access/preview-schema.ts'
import { integerSchema } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

/**
 * Whether an audit entry still contains the values of its change, or the reason why it does not.
 */
export const auditedChangeStates = ['KEPT', 'TOO_LARGE', 'DROPPED', 'NONE'] as const
export type AuditedChangeState = (typeof auditedChangeStates)[number]

const values = { type: 'object', additionalProperties: true } as const

/** The values of a record before and after an audit entry. */
const change = closedObjectSchema({
  kind: textSchema,
  id: textSchema,
  name: { ...textSchema, description: 'after the entry, or before the deletion' },
  before: {
    ...nullableSchema(values),
    description: 'changed fields; null: the record was created',
  },
  after: { ...nullableSchema(values), description: 'changed fields; null: the record was deleted' },
  isPartial: {
    ...booleanSchema,
    description: 'the change also has fields whose values are never stored',
  },
})

/** An entry of the audit log. */
export const auditDetailSchema: NamedSchema = {
  name: 'auditDetail',
  schema: closedObjectSchema({
    index: { type: 'integer', description: 'log index' },
    at: { type: 'string', format: 'date-time', description: 'log time' },
    actor: closedObjectSchema({
      id: textSchema,
      name: { ...textSchema, description: 'name of the actor at that time' },
    }),
    session: textSchema,
    address: textSchema,
    action: textSchema,
    entity: textSchema,
    entityId: textSchema,
    entityName: { ...textSchema, description: 'after the entry, or before the deletion' },
    exists: { ...booleanSchema, description: 'whether the record exists now' },
    fields: {
      ...arraySchema(textSchema),
      description: 'names of the fields that an update changed',
    },
    also: { ...arraySchema(textSchema), description: 'other records written by the same entry' },
    outcome: {
      ...textSchema,
      description: 'done, the code of the refusal, or requested before it is carried out',
    },
    reason: { ...textSchema, description: 'reason; empty if none was given' },
    changeState: {
      type: 'string',
      enum: auditedChangeStates,
      description: 'whether the values of the change are stored; NONE: the entry has no change',
    },
    changes: arraySchema(change),
    omittedChanges: {
      type: 'integer',
      description: 'changed records that are not listed: not kept, or not readable by the caller',
    },
  }),
}

/** A write that undoes an entry. `data` has the fields of the request body for the kind. */
const undoingWrite = closedObjectSchema({
  action: { type: 'string', enum: ['create', 'patch', 'delete'] },
  kind: textSchema,
  id: textSchema,
  name: textSchema,
  data: values,
})

/** The effect that undoing an entry would have at this time. */
export const undoPreviewSchema: NamedSchema = {
  name: 'undoPreview',
  schema: closedObjectSchema({
    entry: auditDetailSchema.schema,
    writes: arraySchema(undoingWrite),
    changes: arraySchema(change),
    omittedChanges: integerSchema,
    access: {
      ...nullableSchema(accessPreviewResponseSchema.schema),
      description: 'null for a caller that may not read identities and services',
    },
    version: { ...textSchema, description: 'changes with every record that the undo writes' },
  }),
}

export const undoBodySchema = objectSchema('undoEntry', {
  version: { type: 'string', maxLength: 64 },
})

/** The result of an undo. */
export const undoResultSchema: NamedSchema = {
  name: 'undone',
  schema: closedObjectSchema({ writes: arraySchema(undoingWrite) }),
}
