import { atCreate } from '../body-members.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { choice, timestamp } from '../fields.ts'
import { published } from '../published.ts'

/**
 * Tokens that a controller signed and that are honoured no longer: the one of that id, or those of
 * an identity or session of that id that were signed before. It is kept until none of them could be
 * valid any more.
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
  fields: published({
    type: choice(['JTI', 'IDENTITY', 'API_SESSION'], { required: true }),
    expiresAt: timestamp({ settable: 'never' }),
  }),
  body: {
    id: atCreate({ type: 'string', minLength: 1, maxLength: 128 }, 'required'),
  },
  symbols: ['expiresAt', 'type', { name: 'issuedBefore', path: ['createdAt'], type: 'datetime' }],
})

export type Revocation = EntityOf<typeof revocation>
