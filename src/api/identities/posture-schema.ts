import type { NamedSchema } from '../../entities/operations.ts'
import {
  dateTimeSchema,
  booleanSchema,
  textSchema,
  openObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { objectSchema } from '../schemas/typed-schema.ts'
import { integerSchema, textListSchema } from '../schemas/envelope.ts'

const bounded = (maxLength: number) => ({ type: ['string', 'null'], maxLength }) as const
const manyBounded = (maxLength: number) =>
  ({ type: ['array', 'null'], maxItems: 64, items: { type: 'string', maxLength } }) as const
const maybe = { type: ['boolean', 'null'] } as const

/**
 * Posture types that clients report with this body. For MFA there are separate operations. A client
 * reports each process separately.
 */
const reportedTypes = ['OS', 'DOMAIN', 'MAC', 'PROCESS', 'ENDPOINT_STATE'] as const

/** Members for all posture types; `typeId` determines which of these members are used. */
export const postureResponseCreateSchema = objectSchema(
  'postureResponseCreate',
  {
    id: { type: 'string', maxLength: 128 },
    typeId: { type: 'string', enum: reportedTypes },
    domain: bounded(255),
    macAddresses: manyBounded(64),
    type: bounded(128),
    // @guard costly-texts--version
    version: bounded(128),
    build: bounded(128),
    path: bounded(4096),
    isRunning: maybe,
    hash: bounded(512),
    signerFingerprints: manyBounded(512),
    woken: maybe,
    unlocked: maybe,
  },
  ['id', 'typeId'],
)

export function postureResponseBulkSchema(maxItems: number) {
  const schema = { type: 'array', maxItems, items: postureResponseCreateSchema.schema } as const
  return { name: 'postureResponseBulkCreate', schema }
}

export const postureResponseSchema: NamedSchema = {
  name: 'postureResponse',
  schema: openObjectSchema({
    services: arraySchema(
      openObjectSchema({
        id: textSchema,
        name: textSchema,
        postureQueryType: textSchema,
        timeout: integerSchema,
        timeoutRemaining: integerSchema,
      }),
    ),
  }),
}

const reported = {
  postureCheckId: textSchema,
  timedOut: booleanSchema,
  lastUpdatedAt: dateTimeSchema,
} as const
const reportOf = (properties: JsonObject): JsonObject =>
  openObjectSchema({ ...reported, ...properties })

const ofApiSession: JsonObject = openObjectSchema(
  {
    endpointState: openObjectSchema({ unlockedAt: dateTimeSchema, wokenAt: dateTimeSchema }),
    mfa: openObjectSchema({
      apiSessionId: textSchema,
      passedAt: dateTimeSchema,
      passedMfa: booleanSchema,
      passedOnUnlock: booleanSchema,
      passedOnWake: booleanSchema,
    }),
    sdkInfo: { type: 'object', additionalProperties: textSchema },
  },
  ['endpointState', 'sdkInfo'],
)

export const postureDataSchema: NamedSchema = {
  name: 'postureDataDetail',
  schema: openObjectSchema({
    apiSessionPostureData: { type: 'object', additionalProperties: ofApiSession },
    domain: reportOf({ domain: textSchema }),
    mac: reportOf({ addresses: textListSchema }),
    os: reportOf({ type: textSchema, version: textSchema, build: textSchema }),
    processes: arraySchema(
      reportOf({
        binaryHash: textSchema,
        isRunning: booleanSchema,
        signerFingerprints: textListSchema,
      }),
    ),
  }),
}

const failedCheck: JsonObject = openObjectSchema(
  {
    postureCheckId: textSchema,
    postureCheckName: textSchema,
    postureCheckType: textSchema,
    // Reported and expected values in the format of the check's type; absent if they are too large.
    actualValue: true,
    expectedValue: true,
    criteria: { type: 'object' },
    semantic: textSchema,
  },
  ['actualValue', 'expectedValue', 'criteria', 'semantic'],
)

export const failedServiceRequestSchema: NamedSchema = {
  name: 'failedServiceRequestDetail',
  schema: {
    type: 'object',
    properties: {
      apiSessionId: textSchema,
      policyFailures: arraySchema(
        openObjectSchema({
          policyId: textSchema,
          policyName: textSchema,
          checks: { type: 'array', items: failedCheck },
        }),
      ),
      serviceId: textSchema,
      serviceName: textSchema,
      sessionType: textSchema,
      when: dateTimeSchema,
    },
  },
}
