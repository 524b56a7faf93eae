import type { NamedSchema } from '../../entities/operations.ts'
import { booleanSchema, textSchema, openObjectSchema } from '../../entities/response-schemas.ts'
import { integerSchema, textListSchema } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

// Schemas of the cluster's members, and of membership changes.

const member: NamedSchema = {
  name: 'clusterMember',
  schema: openObjectSchema(
    {
      id: textSchema,
      address: textSchema,
      ctrlAddress: textSchema,
      voter: booleanSchema,
      leader: booleanSchema,
      connected: booleanSchema,
      version: textSchema,
      readOnly: booleanSchema,
      preferredLeader: booleanSchema,
    },
    ['preferredLeader'],
  ),
}

export const membersSchema: NamedSchema = {
  name: 'clusterMembers',
  schema: openObjectSchema({ data: { type: 'array', items: member.schema } }),
}

export const leadershipTransferSchema = objectSchema('transferLeadership', {
  newLeaderId: { type: ['string', 'null'], maxLength: 256 },
})

const memberId = { type: 'string', minLength: 1, maxLength: 64 } as const
const confirmation = { type: ['string', 'null'], maxLength: 256 } as const

export const memberAdditionSchema = objectSchema(
  'clusterMemberAdd',
  {
    address: { type: 'string', minLength: 1, maxLength: 300 },
    isVoter: booleanSchema,
    confirmation,
  },
  ['address'],
)

export const memberSelectorSchema = objectSchema(
  'clusterMemberChoice',
  { id: memberId, confirmation },
  ['id'],
)

export const memberRemovalSchema = objectSchema(
  'clusterMemberRemove',
  { id: memberId, isCompromised: booleanSchema, confirmation },
  ['id'],
)

export const memberReplacementSchema = objectSchema(
  'clusterMemberReplace',
  { oldId: memberId, newId: memberId, confirmation },
  ['oldId', 'newId'],
)

const changeProperties = {
  verb: { type: 'string', enum: ['promote', 'demote', 'remove', 'replace'] },
  id: memberId,
  isCompromised: booleanSchema,
  oldId: memberId,
  newId: memberId,
} as const

export const plannedChangeSchema = objectSchema('clusterChange', changeProperties, ['verb'])

export const changePlanSchema: NamedSchema = {
  name: 'clusterChangePlan',
  schema: openObjectSchema({
    change: plannedChangeSchema.schema,
    isNeeded: booleanSchema,
    votersBefore: textListSchema,
    votersAfter: textListSchema,
    toleranceBefore: integerSchema,
    toleranceAfter: integerSchema,
    warnings: textListSchema,
    confirmation: { type: ['string', 'null'] },
  }),
}
