import { defineEntity, type EntityOf } from '../define.ts'
import { integer, reference, timestamp } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Attempts at the password of one authenticator since it was last proven, under an auth policy that
 * counts them. The id is the authenticator's, so there is at most one record for each; served by no
 * API.
 */
export const passwordAttempts = defineEntity({
  name: 'passwordAttempts',
  plural: 'passwordAttempts',
  isPublished: false,
  operations: {},
  fields: {
    authenticatorId: reference('authenticator', 'cascade', { ...hidden, required: true }),
    count: integer(hidden),
    /** Log time of the last one that was reserved; a lockout is counted from it. */
    lastAt: timestamp(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type PasswordAttempts = EntityOf<typeof passwordAttempts>
