import type { NamedSchema } from '../../entities/operations.ts'
import { booleanSchema, textSchema, closedObjectSchema } from '../../entities/response-schemas.ts'
import { metricHistoryNames } from '../metrics/metric-history.ts'
import { objectSchema } from '../schemas/typed-schema.ts'
import { integerSchema } from '../schemas/envelope.ts'

const number = { type: 'number' } as const

const member = {
  type: 'object',
  properties: {
    id: textSchema,
    address: textSchema,
    version: textSchema,
    role: textSchema,
    term: integerSchema,
    commit: integerSchema,
    applied: integerSchema,
    persisted: integerSchema,
    digestIndex: integerSchema,
    digest: textSchema,
    lastContactMs: { type: ['number', 'null'] },
    isFailing: booleanSchema,
    featureLevel: integerSchema,
  },
  required: ['id', 'address', 'version', 'role', 'term', 'commit', 'applied', 'persisted'],
  additionalProperties: false,
} as const

const alarm = closedObjectSchema({
  code: textSchema,
  text: textSchema,
  sinceMs: number,
  isCritical: booleanSchema,
})

/** Result of a log-time reset. */
export const logTimeResetResultSchema: NamedSchema = {
  name: 'clusterLogTimeReset',
  schema: closedObjectSchema({
    aheadMs: {
      ...integerSchema,
      description: 'by how much log time was reduced; 0: it was ahead by 2 s at most',
    },
    logTime: { ...textSchema, format: 'date-time', description: 'log time after the reset' },
  }),
}

/** The cluster as one controller sees it (src/api/cluster/cluster-status.ts). */
export const clusterStatusSchema: NamedSchema = {
  name: 'clusterStatus',
  schema: closedObjectSchema(
    {
      clusterId: textSchema,
      generation: integerSchema,
      selfId: textSchema,
      leaderId: { type: ['string', 'null'] },
      members: { type: 'array', items: member },
      failureTolerance: integerSchema,
      failureToleranceMax: integerSchema,
      nextRisk: textSchema,
      featureLevel: integerSchema,
      nextFeatureLevel: closedObjectSchema({
        level: integerSchema,
        waitsFor: { type: 'array', items: textSchema },
      }),
      alarms: { type: 'array', items: alarm },
    },
    ['nextFeatureLevel', 'failureToleranceMax'],
  ),
}

const samples = { type: 'array', items: { type: ['number', 'null'] } } as const

/** Measurements of one controller from the last hour, the oldest sample first. */
export const clusterHistorySchema: NamedSchema = {
  name: 'clusterHistory',
  schema: closedObjectSchema({
    selfId: textSchema,
    periodSeconds: number,
    endedAt: { type: ['string', 'null'], format: 'date-time' },
    figures: {
      type: 'object',
      properties: Object.fromEntries(metricHistoryNames.map((name) => [name, samples])),
      required: metricHistoryNames,
      additionalProperties: false,
    },
  }),
}

/**
 * The schema does not limit the length of the password: a validation error contains the refused
 * value, and the password is a secret.
 */
export const adminRecoverySchema = objectSchema(
  'clusterAdminRecovery',
  { name: { type: 'string', maxLength: 300 }, password: textSchema },
  ['password'],
)

export const recoveredAdminSchema: NamedSchema = {
  name: 'clusterRecoveredAdmin',
  schema: closedObjectSchema({
    identityId: textSchema,
    name: textSchema,
    username: textSchema,
    authPolicyId: textSchema,
  }),
}
