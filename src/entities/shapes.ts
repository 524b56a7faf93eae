import type { JsonObject } from '../lib/text/canonical-json.ts'
import { fieldLimits } from './fields.ts'

/** JSON Schemas that several descriptors use for responses. */
export const text = { type: 'string' } as const
export const dateTime = { type: 'string', format: 'date-time' } as const
export const flag = { type: 'boolean' } as const

interface WholeObject<P extends JsonObject, Optional extends string> extends JsonObject {
  readonly type: 'object'
  readonly properties: P
  readonly required: readonly Exclude<keyof P & string, Optional>[]
}

/**
 * Schema of an object that always has the given members, except the optional ones, and may have
 * others.
 */
export function wholeObject<const P extends JsonObject, const Optional extends string = never>(
  properties: P,
  optional: readonly (Optional & keyof P)[] = [],
): WholeObject<P, Optional> {
  const names = Object.keys(properties) as Exclude<keyof P & string, Optional>[]
  const required = names.filter((name) => !(optional as readonly string[]).includes(name))
  return { type: 'object', properties, required }
}

/** The same without others. */
export function closedObject<const P extends JsonObject, const Optional extends string = never>(
  properties: P,
  optional?: readonly (Optional & keyof P)[],
): WholeObject<P, Optional> {
  return { ...wholeObject<P, Optional>(properties, optional), additionalProperties: false }
}

export function arraySchema<const Items extends JsonObject>(
  items: Items,
): { readonly type: 'array'; readonly items: Items } {
  return { type: 'array', items }
}

export const links: JsonObject = {
  type: 'object',
  additionalProperties: wholeObject({ href: text }),
}

export const entityRef: JsonObject = wholeObject({
  _links: links,
  entity: text,
  id: text,
  name: text,
})

export const entityRefWithUrlName: JsonObject = {
  ...entityRef,
  properties: { ...(entityRef['properties'] as JsonObject), urlName: text },
}

export const nullableEntityRef: JsonObject = { anyOf: [entityRef, { type: 'null' }] }

export const namedRoles: JsonObject = {
  type: 'array',
  items: wholeObject({ role: text, name: text }),
}

const dialBind: JsonObject = { type: 'string', enum: ['Dial', 'Bind', 'Invalid'] }
export const dialBindList: JsonObject = { type: 'array', items: dialBind }

/** Config type name → the config's data. */
export const configsByType: JsonObject = {
  type: 'object',
  additionalProperties: { type: 'object', additionalProperties: true },
}

const queriedProcess: JsonObject = { type: 'object', properties: { osType: text, path: text } }

/**
 * Posture query that is sent to a client; the members after `updatedAt` are each for a single type.
 */
const postureQuery: JsonObject = {
  type: 'object',
  properties: {
    _links: links,
    createdAt: dateTime,
    id: text,
    isPassing: flag,
    queryType: text,
    tags: { type: 'object', additionalProperties: true },
    timeout: { type: 'integer' },
    timeoutRemaining: { type: 'integer' },
    timeoutAt: dateTime,
    updatedAt: dateTime,
    process: queriedProcess,
    processes: { type: 'array', items: queriedProcess },
    promptOnUnlock: flag,
    promptOnWake: flag,
  },
  required: ['id', 'isPassing', 'queryType', 'timeout', 'timeoutRemaining'],
}

export const policyQueryList: JsonObject = {
  type: 'array',
  items: wholeObject({
    policyId: text,
    policyType: dialBind,
    isPassing: flag,
    postureQueries: { type: 'array', items: postureQuery },
  }),
}

/** Network interfaces that a router or a client reports. */
export const interfaceList: JsonObject = arraySchema(
  wholeObject({
    addresses: arraySchema(text),
    hardwareAddress: text,
    index: { type: 'integer' },
    isBroadcast: flag,
    isLoopback: flag,
    isMulticast: flag,
    isRunning: flag,
    isUp: flag,
    mtu: { type: 'integer' },
    name: text,
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

export const authQueryList: JsonObject = {
  type: 'array',
  items: {
    type: 'object',
    properties: {
      clientId: text,
      format: text,
      httpMethod: text,
      httpUrl: text,
      id: text,
      isTotpEnrolled: flag,
      maxLength: { type: 'integer' },
      minLength: { type: 'integer' },
      provider: text,
      scopes: { type: 'array', items: text },
      typeId: text,
    },
    required: ['provider'],
  },
}

/**
 * Data that the applications of an identity share. It may be nested, because SDKs pass it to
 * applications as JSON.
 */
export const applicationData = {
  type: 'object',
  maxProperties: fieldLimits.tagsMax,
  additionalProperties: true,
} as const
