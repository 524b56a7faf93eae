import type { NamedSchema } from '../../entities/operations.ts'
import {
  arraySchema,
  booleanSchema,
  textSchema,
  closedObjectSchema,
} from '../../entities/response-schemas.ts'
import { objectSchema } from '../schemas/typed-schema.ts'
import { integerSchema } from '../schemas/envelope.ts'

const shortText = { type: 'string', maxLength: 300 } as const

export const newJoinTicketRequestSchema = objectSchema('clusterInvitation', {
  isVoter: { type: ['boolean', 'null'] },
  /** Lifetime of the ticket: from one minute to 7 days; null: one hour. */
  lifetimeMs: { type: ['integer', 'null'] },
})

export const newJoinTicketSchema: NamedSchema = {
  name: 'clusterInvitationDetail',
  schema: closedObjectSchema({ ticket: textSchema, id: textSchema, expiresAtMs: integerSchema }),
}

export const joinTicketSchema: NamedSchema = {
  name: 'clusterTicketDetail',
  schema: closedObjectSchema({
    id: textSchema,
    isVoter: booleanSchema,
    createdAtMs: integerSchema,
    expiresAtMs: integerSchema,
    usedBy: { type: ['string', 'null'] },
  }),
}

export const joinTicketSelectorSchema = objectSchema('clusterTicketChoice', { id: shortText }, [
  'id',
])

/**
 * The schema does not limit the length of the ticket, because a validation error would quote the
 * ticket, which is a secret.
 */
export const joinRequestSchema = objectSchema(
  'clusterJoin',
  {
    ticket: textSchema,
    id: shortText,
    certificateRequestPem: textSchema,
    storeId: { type: 'string', minLength: 22, maxLength: 22 },
    address: shortText,
    hosts: { type: 'array', minItems: 1, maxItems: 32, items: shortText },
    version: shortText,
    featureLevel: { type: 'integer', minimum: 0 },
  },
  [
    'ticket',
    'id',
    'certificateRequestPem',
    'storeId',
    'address',
    'hosts',
    'version',
    'featureLevel',
  ],
)

export const joinResponseSchema: NamedSchema = {
  name: 'clusterJoinDetail',
  schema: closedObjectSchema({
    clusterId: textSchema,
    generation: integerSchema,
    trustDomain: textSchema,
    certificatePem: textSchema,
    caPem: textSchema,
    configuration: textSchema,
    configurationIndex: integerSchema,
    isVoter: booleanSchema,
    nowMs: integerSchema,
    /** Options that must be equal on every controller; the values are JSON text. */
    sharedOptions: arraySchema(closedObjectSchema({ name: textSchema, value: textSchema })),
  }),
}
