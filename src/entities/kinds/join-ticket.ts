import { defineEntity, type EntityOf } from '../define-entity.ts'
import { booleanField, textField, timestampField } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * A single-use permission to join, stored as a digest; not served by any API. `usedByNodeId` is ''
 * until the ticket is used.
 */
export const joinTicket = defineEntity({
  name: 'joinTicket',
  plural: 'joinTickets',
  isPublished: false,
  operations: {},
  fields: {
    /** SHA-256 of the ticket string, hex. */
    digest: textField(hidden),
    /** False if a controller that joins with this ticket stays a learner. */
    isVoter: booleanField(hidden),
    /** Log time, UTC ms. */
    expiresAt: timestampField(hidden),
    usedByNodeId: textField(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type JoinTicket = EntityOf<typeof joinTicket>
