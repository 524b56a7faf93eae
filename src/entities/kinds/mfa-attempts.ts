import { defineEntity, type EntityOf } from '../define.ts'
import { integer, reference, timestamp } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Attempts of one identity to give a code since the last one that was right. The id is the
 * identity's, so there is at most one record for each; served by no API.
 */
export const mfaAttempts = defineEntity({
  name: 'mfaAttempts',
  plural: 'mfaAttempts',
  isPublished: false,
  operations: {},
  fields: {
    identityId: reference('identity', 'cascade', { ...hidden, required: true }),
    count: integer(hidden),
    /** Log time of the last one that was reserved; a pause is counted from it. */
    lastAt: timestamp(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type MfaAttempts = EntityOf<typeof mfaAttempts>
