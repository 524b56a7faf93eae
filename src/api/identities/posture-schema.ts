import type { NamedSchema } from '../../entities/operations.ts'
import {
  dateTimeSchema,
  booleanSchema,
  text,
  openObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { objectSchema } from '../schemas/typed-schema.ts'
import { integer, texts } from '../schemas/envelope.ts'

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
        id: text,
        name: text,
        postureQueryType: text,
        timeout: integer,
        timeoutRemaining: integer,
      }),
    ),
  }),
}

const reported = {
  postureCheckId: text,
  timedOut: booleanSchema,
  lastUpdatedAt: dateTimeSchema,
} as const
const reportOf = (properties: JsonObject): JsonObject =>
  openObjectSchema({ ...reported, ...properties })

const ofApiSession: JsonObject = openObjectSchema(
  {
    endpointState: openObjectSchema({ unlockedAt: dateTimeSchema, wokenAt: dateTimeSchema }),
    mfa: openObjectSchema({
      apiSessionId: text,
      passedAt: dateTimeSchema,
      passedMfa: booleanSchema,
      passedOnUnlock: booleanSchema,
      passedOnWake: booleanSchema,
    }),
    sdkInfo: { type: 'object', additionalProperties: text },
  },
  ['endpointState', 'sdkInfo'],
)

export const postureDataSchema: NamedSchema = {
  name: 'postureDataDetail',
  schema: openObjectSchema({
    apiSessionPostureData: { type: 'object', additionalProperties: ofApiSession },
    domain: reportOf({ domain: text }),
    mac: reportOf({ addresses: texts }),
    os: reportOf({ type: text, version: text, build: text }),
    processes: arraySchema(
      reportOf({ binaryHash: text, isRunning: booleanSchema, signerFingerprints: texts }),
    ),
  }),
}

const failedCheck: JsonObject = openObjectSchema(
  {
    postureCheckId: text,
    postureCheckName: text,
    postureCheckType: text,
    // Reported values in the format of the check's type; absent if they would be too large.
    actualValue: true,
    expectedValue: true,
    criteria: { type: 'object' },
    semantic: text,
  },
  ['actualValue', 'expectedValue', 'criteria', 'semantic'],
)

export const failedServiceRequestSchema: NamedSchema = {
  name: 'failedServiceRequestDetail',
  schema: {
    type: 'object',
    properties: {
      apiSessionId: text,
      policyFailures: arraySchema(
        openObjectSchema({
          policyId: text,
          policyName: text,
          checks: { type: 'array', items: failedCheck },
        }),
      ),
      serviceId: text,
      serviceName: text,
      sessionType: text,
      when: dateTimeSchema,
    },
  },
}
