import { createOnlyMember } from '../body-members.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { choice, timestamp } from '../fields.ts'
import { shownInEvents } from '../published.ts'

/**
 * Revokes tokens that controllers signed: the token with this id, or all earlier tokens of the
 * identity or session with this id. The record is kept until all these tokens have expired.
 */
export const revocation = defineEntity({
  name: 'revocation',
  plural: 'revocations',
  isPublished: true,
  operations: {
    management: {
      list: 'revocation.read',
      create: 'revocation.create',
      detail: 'revocation.read',
    },
  },
  idFrom: 'id',
  fields: shownInEvents({
    type: choice(['JTI', 'IDENTITY', 'API_SESSION'], { required: true }),
    expiresAt: timestamp({ settable: 'never' }),
  }),
  body: {
    id: createOnlyMember({ type: 'string', minLength: 1, maxLength: 128 }, 'required'),
  },
  symbols: ['expiresAt', 'type', { name: 'issuedBefore', path: ['createdAt'], type: 'datetime' }],
})

export type Revocation = EntityOf<typeof revocation>
