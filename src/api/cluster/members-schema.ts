import type { NamedSchema } from '../../entities/operations.ts'
import { flag, text } from '../../entities/shapes.ts'
import { integer, texts } from '../schemas/envelope.ts'

/** Members of the cluster and planned changes of them. */
export const member: NamedSchema = {
  name: 'clusterMember',
  schema: {
    type: 'object',
    properties: {
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
    required: [
      'id',
      'address',
      'ctrlAddress',
      'voter',
      'leader',
      'connected',
      'version',
      'readOnly',
    ],
  },
}

export const membersSchema: NamedSchema = {
  name: 'clusterMembers',
  schema: {
    type: 'object',
    properties: { data: { type: 'array', items: member.schema } },
    required: ['data'],
  },
}

export const leadershipTransfer: NamedSchema = {
  name: 'transferLeadership',
  schema: {
    type: 'object',
    properties: { newLeaderId: { type: ['string', 'null'], maxLength: 256 } },
  },
}

const memberId = { type: 'string', minLength: 1, maxLength: 64 } as const
const confirmation = { type: ['string', 'null'], maxLength: 256 } as const

export const memberAddition: NamedSchema = {
  name: 'clusterMemberAdd',
  schema: {
    type: 'object',
    properties: {
      address: { type: 'string', minLength: 1, maxLength: 300 },
      isVoter: flag,
      confirmation,
    },
    required: ['address'],
  },
}

export const memberChoice: NamedSchema = {
  name: 'clusterMemberChoice',
  schema: { type: 'object', properties: { id: memberId, confirmation }, required: ['id'] },
}

export const memberRemoval: NamedSchema = {
  name: 'clusterMemberRemove',
  schema: {
    type: 'object',
    properties: { id: memberId, isCompromised: flag, confirmation },
    required: ['id'],
  },
}

export const memberReplacement: NamedSchema = {
  name: 'clusterMemberReplace',
  schema: {
    type: 'object',
    properties: { oldId: memberId, newId: memberId, confirmation },
    required: ['oldId', 'newId'],
  },
}

const changeProperties = {
  verb: { type: 'string', enum: ['promote', 'demote', 'remove', 'replace'] },
  id: memberId,
  isCompromised: flag,
  oldId: memberId,
  newId: memberId,
} as const

export const plannedChange: NamedSchema = {
  name: 'clusterChange',
  schema: { type: 'object', properties: changeProperties, required: ['verb'] },
}

export const changePlan: NamedSchema = {
  name: 'clusterChangePlan',
  schema: {
    type: 'object',
    properties: {
      change: { type: 'object', properties: changeProperties, required: ['verb'] },
      isNeeded: flag,
      votersBefore: texts,
      votersAfter: texts,
      toleranceBefore: integer,
      toleranceAfter: integer,
      warnings: texts,
      confirmation: { type: ['string', 'null'] },
    },
    required: [
      'change',
      'isNeeded',
      'votersBefore',
      'votersAfter',
      'toleranceBefore',
      'toleranceAfter',
      'warnings',
      'confirmation',
    ],
  },
}
