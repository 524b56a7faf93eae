import { defineEntity, type EntityOf } from '../define-entity.ts'
import { integerField, idReferenceField, timestampField } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Number of password attempts for one authenticator since the last success or expired lockout, if
 * the auth policy limits wrong passwords. The record's id is the authenticator's id, so there is at
 * most one record per authenticator; not served by any API.
 */
export const passwordAttempts = defineEntity({
  name: 'passwordAttempts',
  plural: 'passwordAttempts',
  isPublished: false,
  operations: {},
  fields: {
    authenticatorId: idReferenceField('authenticator', 'cascade', { ...hidden, required: true }),
    count: integerField(hidden),
    /** Log time of the last recorded attempt, at which a lockout begins. */
    lastAt: timestampField(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type PasswordAttempts = EntityOf<typeof passwordAttempts>
