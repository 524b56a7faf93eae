import type { NamedSchema } from '../../entities/operations.ts'
import { flag, text, closedObject } from '../../entities/shapes.ts'
import { historyFigures } from '../metrics/figure-history.ts'
import { objectSchema } from '../schemas/typed-schema.ts'
import { integer } from '../schemas/envelope.ts'

const number = { type: 'number' } as const

const member = {
  type: 'object',
  properties: {
    id: text,
    address: text,
    version: text,
    role: text,
    term: integer,
    commit: integer,
    applied: integer,
    persisted: integer,
    digestIndex: integer,
    digest: text,
    lastContactMs: { type: ['number', 'null'] },
    isFailing: flag,
    featureLevel: integer,
  },
  required: ['id', 'address', 'version', 'role', 'term', 'commit', 'applied', 'persisted'],
  additionalProperties: false,
} as const

const alarm = closedObject({ code: text, text, sinceMs: number, isCritical: flag })

/** Result of a log-time reset. */
export const logTimeResult: NamedSchema = {
  name: 'clusterLogTimeReset',
  schema: closedObject({
    aheadMs: { ...integer, description: 'how far it was brought back; 0: it was not ahead' },
    logTime: { ...text, format: 'date-time', description: 'log time from there on' },
  }),
}

/** The cluster as one controller sees it (src/api/cluster/cluster-status.ts). */
export const clusterStatus: NamedSchema = {
  name: 'clusterStatus',
  schema: closedObject(
    {
      clusterId: text,
      generation: integer,
      selfId: text,
      leaderId: { type: ['string', 'null'] },
      members: { type: 'array', items: member },
      failureTolerance: integer,
      nextRisk: text,
      featureLevel: integer,
      nextFeatureLevel: closedObject({ level: integer, waitsFor: { type: 'array', items: text } }),
      alarms: { type: 'array', items: alarm },
    },
    ['nextFeatureLevel'],
  ),
}

const samples = { type: 'array', items: { type: ['number', 'null'] } } as const

/** Measurements of one controller from the last hour, the oldest sample first. */
export const clusterHistory: NamedSchema = {
  name: 'clusterHistory',
  schema: closedObject({
    selfId: text,
    periodSeconds: number,
    endedAt: { type: ['string', 'null'], format: 'date-time' },
    figures: {
      type: 'object',
      properties: Object.fromEntries(historyFigures.map((name) => [name, samples])),
      required: historyFigures,
      additionalProperties: false,
    },
  }),
}

/**
 * The schema sets no limit on the password: an error about the limit would repeat the password,
 * which is a secret.
 */
export const adminRecovery = objectSchema(
  'clusterAdminRecovery',
  { name: { type: 'string', maxLength: 300 }, password: text },
  ['password'],
)

export const recoveredAdmin: NamedSchema = {
  name: 'clusterRecoveredAdmin',
  schema: closedObject({ identityId: text, name: text, username: text, authPolicyId: text }),
}
