import type { NamedSchema } from '../../entities/operations.ts'
import { flag, text } from '../../entities/shapes.ts'

const level = { type: 'integer', minimum: 0 } as const

const member = {
  type: 'object',
  properties: {
    id: text,
    isVoter: flag,
    isConnected: flag,
    version: { ...text, description: 'empty when it was not heard' },
    featureLevel: { ...level, description: 'the newest that its version knows; 0: not heard' },
    holdsBack: { ...flag, description: 'the next level is not raised because of it' },
    action: { ...text, description: 'what to do about it; empty: nothing' },
  },
  required: ['action', 'featureLevel', 'holdsBack', 'id', 'isConnected', 'isVoter', 'version'],
  additionalProperties: false,
} as const

export const upgradeStatus: NamedSchema = {
  name: 'clusterUpgradeStatus',
  schema: {
    type: 'object',
    properties: {
      featureLevel: { ...level, description: 'in force' },
      nextFeatureLevel: { type: ['integer', 'null'], description: 'null: no member knows more' },
      state: { type: 'string', enum: ['complete', 'mixed', 'waiting'] },
      advice: text,
      notNow: { ...text, description: 'why no controller should be stopped now; empty: it can be' },
      members: { type: 'array', items: member },
    },
    required: ['advice', 'featureLevel', 'members', 'nextFeatureLevel', 'notNow', 'state'],
    additionalProperties: false,
  },
}
