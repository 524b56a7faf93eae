import type { NamedSchema } from '../../entities/operations.ts'
import { flag, text, wholeObject } from '../../entities/shapes.ts'
import { integer, texts } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

/** Members of the cluster, and planned changes to the members. */
const member: NamedSchema = {
  name: 'clusterMember',
  schema: wholeObject(
    {
      id: text,
      address: text,
      ctrlAddress: text,
      voter: flag,
      leader: flag,
      connected: flag,
      version: text,
      readOnly: flag,
      preferredLeader: flag,
    },
    ['preferredLeader'],
  ),
}

export const membersSchema: NamedSchema = {
  name: 'clusterMembers',
  schema: wholeObject({ data: { type: 'array', items: member.schema } }),
}

export const leadershipTransfer = objectSchema('transferLeadership', {
  newLeaderId: { type: ['string', 'null'], maxLength: 256 },
})

const memberId = { type: 'string', minLength: 1, maxLength: 64 } as const
const confirmation = { type: ['string', 'null'], maxLength: 256 } as const

export const memberAddition = objectSchema(
  'clusterMemberAdd',
  { address: { type: 'string', minLength: 1, maxLength: 300 }, isVoter: flag, confirmation },
  ['address'],
)

export const memberSelectorSchema = objectSchema(
  'clusterMemberChoice',
  { id: memberId, confirmation },
  ['id'],
)

export const memberRemoval = objectSchema(
  'clusterMemberRemove',
  { id: memberId, isCompromised: flag, confirmation },
  ['id'],
)

export const memberReplacement = objectSchema(
  'clusterMemberReplace',
  { oldId: memberId, newId: memberId, confirmation },
  ['oldId', 'newId'],
)

const changeProperties = {
  verb: { type: 'string', enum: ['promote', 'demote', 'remove', 'replace'] },
  id: memberId,
  isCompromised: flag,
  oldId: memberId,
  newId: memberId,
} as const

export const plannedChange = objectSchema('clusterChange', changeProperties, ['verb'])

export const changePlan: NamedSchema = {
  name: 'clusterChangePlan',
  schema: wholeObject({
    change: plannedChange.schema,
    isNeeded: flag,
    votersBefore: texts,
    votersAfter: texts,
    toleranceBefore: integer,
    toleranceAfter: integer,
    warnings: texts,
    confirmation: { type: ['string', 'null'] },
  }),
}
