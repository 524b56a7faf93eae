import { defineEntity, type EntityOf } from '../define-entity.ts'
import { integerField, idReferenceField, timestampField } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Number of submitted codes of one identity since the last correct code. The record's id is the
 * identity's id, so there is at most one record per identity; not served by any API.
 */
export const mfaAttempts = defineEntity({
  name: 'mfaAttempts',
  plural: 'mfaAttempts',
  isPublished: false,
  operations: {},
  fields: {
    identityId: idReferenceField('identity', 'cascade', { ...hidden, required: true }),
    count: integerField(hidden),
    /** Log time of the last recorded attempt, at which a pause after too many attempts begins. */
    lastAt: timestampField(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type MfaAttempts = EntityOf<typeof mfaAttempts>
