import type { JsonObject } from '../lib/text/canonical-json.ts'
import { fieldLimits } from './fields.ts'

/** JSON Schemas that several descriptors use. */
export const textSchema = { type: 'string' } as const
export const dateTimeSchema = { type: 'string', format: 'date-time' } as const
export const booleanSchema = { type: 'boolean' } as const

interface WholeObject<P extends JsonObject, Optional extends string> extends JsonObject {
  readonly type: 'object'
  readonly properties: P
  readonly required: readonly Exclude<keyof P & string, Optional>[]
}

/**
 * Schema of an object that has all of the given members, except the optional ones, and may have
 * further members.
 */
export function openObjectSchema<const P extends JsonObject, const Optional extends string = never>(
  properties: P,
  optional: readonly (Optional & keyof P)[] = [],
): WholeObject<P, Optional> {
  const names = Object.keys(properties) as Exclude<keyof P & string, Optional>[]
  const required = names.filter((name) => !(optional as readonly string[]).includes(name))
  return { type: 'object', properties, required }
}

/** Like `openObjectSchema`, but without further members. */
export function closedObjectSchema<
  const P extends JsonObject,
  const Optional extends string = never,
>(properties: P, optional?: readonly (Optional & keyof P)[]): WholeObject<P, Optional> {
  return { ...openObjectSchema<P, Optional>(properties, optional), additionalProperties: false }
}

export function arraySchema<const Items extends JsonObject>(
  items: Items,
): { readonly type: 'array'; readonly items: Items } {
  return { type: 'array', items }
}

export const linksSchema: JsonObject = {
  type: 'object',
  additionalProperties: openObjectSchema({ href: textSchema }),
}

export const entityRefSchema: JsonObject = openObjectSchema({
  _links: linksSchema,
  entity: textSchema,
  id: textSchema,
  name: textSchema,
})

export const entityRefWithUrlNameSchema: JsonObject = {
  ...entityRefSchema,
  properties: { ...(entityRefSchema['properties'] as JsonObject), urlName: textSchema },
}

export const nullableEntityRefSchema: JsonObject = { anyOf: [entityRefSchema, { type: 'null' }] }

export const namedRolesSchema: JsonObject = {
  type: 'array',
  items: openObjectSchema({ role: textSchema, name: textSchema }),
}

const dialBind: JsonObject = { type: 'string', enum: ['Dial', 'Bind', 'Invalid'] }
export const dialBindListSchema: JsonObject = { type: 'array', items: dialBind }

/** Config type name → the config's data. */
export const configsByTypeSchema: JsonObject = {
  type: 'object',
  additionalProperties: { type: 'object', additionalProperties: true },
}

const queriedProcess: JsonObject = {
  type: 'object',
  properties: { osType: textSchema, path: textSchema },
}

/**
 * Posture query that a controller sends to a client; the check type determines which members after
 * `updatedAt` it has.
 */
const postureQuery: JsonObject = {
  type: 'object',
  properties: {
    _links: linksSchema,
    createdAt: dateTimeSchema,
    id: textSchema,
    isPassing: booleanSchema,
    queryType: textSchema,
    tags: { type: 'object', additionalProperties: true },
    timeout: { type: 'integer' },
    timeoutRemaining: { type: 'integer' },
    timeoutAt: dateTimeSchema,
    updatedAt: dateTimeSchema,
    process: queriedProcess,
    processes: { type: 'array', items: queriedProcess },
    promptOnUnlock: booleanSchema,
    promptOnWake: booleanSchema,
  },
  required: ['id', 'isPassing', 'queryType', 'timeout', 'timeoutRemaining'],
}

export const policyQueryListSchema: JsonObject = {
  type: 'array',
  items: openObjectSchema({
    policyId: textSchema,
    policyType: dialBind,
    isPassing: booleanSchema,
    postureQueries: { type: 'array', items: postureQuery },
  }),
}

/** Network interfaces that a router or a client reports. */
export const interfaceListSchema: JsonObject = arraySchema(
  openObjectSchema({
    addresses: arraySchema(textSchema),
    hardwareAddress: textSchema,
    index: { type: 'integer' },
    isBroadcast: booleanSchema,
    isLoopback: booleanSchema,
    isMulticast: booleanSchema,
    isRunning: booleanSchema,
    isUp: booleanSchema,
    mtu: { type: 'integer' },
    name: textSchema,
  }),
)

function textsOf(names: readonly string[], maxLength: number): JsonObject {
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string', maxLength }])),
  }
}

export const envInfoSchema = textsOf(
  ['arch', 'domain', 'hostname', 'os', 'osRelease', 'osVersion'],
  255,
)
export const sdkInfoSchema = textsOf(
  ['appId', 'appVersion', 'branch', 'revision', 'type', 'version'],
  255,
)

export const authQueryListSchema: JsonObject = {
  type: 'array',
  items: {
    type: 'object',
    properties: {
      clientId: textSchema,
      format: textSchema,
      httpMethod: textSchema,
      httpUrl: textSchema,
      id: textSchema,
      isTotpEnrolled: booleanSchema,
      maxLength: { type: 'integer' },
      minLength: { type: 'integer' },
      provider: textSchema,
      scopes: { type: 'array', items: textSchema },
      typeId: textSchema,
    },
    required: ['provider'],
  },
}

/**
 * Data that the applications of an identity share. The data may be nested, because SDKs pass it to
 * applications as JSON.
 */
export const applicationDataSchema = {
  type: 'object',
  maxProperties: fieldLimits.tagsMax,
  additionalProperties: true,
} as const
