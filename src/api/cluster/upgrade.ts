import { upgradeStatusOf } from './upgrade-status.ts'
import { detailAnswer } from '../answers/envelope.ts'
import type { Operation } from '../operation.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { flag, text } from '../../entities/shapes.ts'

const level = { type: 'integer', minimum: 0 } as const

const member = {
  type: 'object',
  properties: {
    id: text,
    isVoter: flag,
    isConnected: flag,
    version: { ...text, description: 'empty: not known yet' },
    featureLevel: {
      ...level,
      description: 'the highest that its version supports; 0: not known yet',
    },
    holdsBack: { ...flag, description: 'this member keeps the next level from being activated' },
    action: { ...text, description: 'what to do about it; empty: nothing' },
  },
  required: ['action', 'featureLevel', 'holdsBack', 'id', 'isConnected', 'isVoter', 'version'],
  additionalProperties: false,
} as const

const upgradeStatus: NamedSchema = {
  name: 'clusterUpgradeStatus',
  schema: {
    type: 'object',
    properties: {
      featureLevel: { ...level, description: 'current level of the cluster' },
      nextFeatureLevel: {
        type: ['integer', 'null'],
        description: 'null: no member supports a higher one',
      },
      state: { type: 'string', enum: ['complete', 'mixed', 'waiting'] },
      advice: text,
      notNow: { ...text, description: 'why no controller should be stopped now; empty: it can be' },
      members: { type: 'array', items: member },
    },
    required: ['advice', 'featureLevel', 'members', 'nextFeatureLevel', 'notNow', 'state'],
    additionalProperties: false,
  },
}

interface Needs {
  readonly cluster: ClusterView
}

/** How far a rolling upgrade is, as this controller sees its members. */
export function upgradeOperations({ cluster }: Needs): Operation[] {
  return [
    {
      operationId: 'clusterUpgradeStatus',
      summary: 'Show versions and feature levels of the members, and what blocks an upgrade',
      tag: 'cluster',
      apis: ['fabric'],
      method: 'GET',
      path: '/cluster/upgrade-status',
      permission: 'admin',
      success: 200,
      response: { kind: 'detail', schema: upgradeStatus },
      needsNoState: true,
      handle: () => detailAnswer({ ...upgradeStatusOf(cluster) }),
    },
  ]
}
