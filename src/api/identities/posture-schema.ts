import type { NamedSchema } from '../../entities/operations.ts'
import { dateTime, flag, text, wholeObject, arraySchema } from '../../entities/shapes.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { objectSchema } from '../schemas/typed-schema.ts'
import { integer, texts } from '../schemas/envelope.ts'

const bounded = (maxLength: number) => ({ type: ['string', 'null'], maxLength }) as const
const manyBounded = (maxLength: number) =>
  ({ type: ['array', 'null'], maxItems: 64, items: { type: 'string', maxLength } }) as const
const maybe = { type: ['boolean', 'null'] } as const

/**
 * Posture types that clients report with this body. MFA has separate operations, and a client
 * reports each process separately.
 */
const reportedTypes = ['OS', 'DOMAIN', 'MAC', 'PROCESS', 'ENDPOINT_STATE'] as const

/** The members of all posture types; `typeId` determines which of them are used. */
export const postureResponseCreate = objectSchema(
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

export function postureResponseBulk(maxItems: number) {
  const schema = { type: 'array', maxItems, items: postureResponseCreate.schema } as const
  return { name: 'postureResponseBulkCreate', schema }
}

export const postureResponse: NamedSchema = {
  name: 'postureResponse',
  schema: wholeObject({
    services: arraySchema(
      wholeObject({
        id: text,
        name: text,
        postureQueryType: text,
        timeout: integer,
        timeoutRemaining: integer,
      }),
    ),
  }),
}

const reported = { postureCheckId: text, timedOut: flag, lastUpdatedAt: dateTime } as const
const reportOf = (properties: JsonObject): JsonObject => wholeObject({ ...reported, ...properties })

const ofApiSession: JsonObject = wholeObject(
  {
    endpointState: wholeObject({ unlockedAt: dateTime, wokenAt: dateTime }),
    mfa: wholeObject({
      apiSessionId: text,
      passedAt: dateTime,
      passedMfa: flag,
      passedOnUnlock: flag,
      passedOnWake: flag,
    }),
    sdkInfo: { type: 'object', additionalProperties: text },
  },
  ['endpointState', 'sdkInfo'],
)

export const postureData: NamedSchema = {
  name: 'postureDataDetail',
  schema: wholeObject({
    apiSessionPostureData: { type: 'object', additionalProperties: ofApiSession },
    domain: reportOf({ domain: text }),
    mac: reportOf({ addresses: texts }),
    os: reportOf({ type: text, version: text, build: text }),
    processes: arraySchema(
      reportOf({ binaryHash: text, isRunning: flag, signerFingerprints: texts }),
    ),
  }),
}

const failedCheck: JsonObject = wholeObject(
  {
    postureCheckId: text,
    postureCheckName: text,
    postureCheckType: text,
    // Reported values, in the format of the check's type; absent if they would be too large.
    actualValue: true,
    expectedValue: true,
    criteria: { type: 'object' },
    semantic: text,
  },
  ['actualValue', 'expectedValue', 'criteria', 'semantic'],
)

export const failedServiceRequest: NamedSchema = {
  name: 'failedServiceRequestDetail',
  schema: {
    type: 'object',
    properties: {
      apiSessionId: text,
      policyFailures: arraySchema(
        wholeObject({
          policyId: text,
          policyName: text,
          checks: { type: 'array', items: failedCheck },
        }),
      ),
      serviceId: text,
      serviceName: text,
      sessionType: text,
      when: dateTime,
    },
  },
}
