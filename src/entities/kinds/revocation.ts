import { bodyMemberForCreate } from '../body-members.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import { choiceField, timestampField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'

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
  fields: markShownInEvents({
    type: choiceField(['JTI', 'IDENTITY', 'API_SESSION'], { required: true }),
    expiresAt: timestampField({ settable: 'never' }),
  }),
  body: {
    id: bodyMemberForCreate({ type: 'string', minLength: 1, maxLength: 128 }, 'required'),
  },
  symbols: ['expiresAt', 'type', { name: 'issuedBefore', path: ['createdAt'], type: 'datetime' }],
})

export type Revocation = EntityOf<typeof revocation>
