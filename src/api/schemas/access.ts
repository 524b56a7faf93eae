import { detailSchema } from '../../entities/schema.ts'
import { findEntity } from '../../entities/registry.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import {
  dateTime,
  entityRef,
  flag,
  links,
  text,
  wholeObject,
  arraySchema,
} from '../../entities/shapes.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { objectSchema } from './typed-schema.ts'
import { integer } from './envelope.ts'

const tags = { type: 'object', additionalProperties: true } as const
const dialBind = { type: 'string', enum: ['Dial', 'Bind'] } as const
const protocols = { type: 'object', additionalProperties: text } as const

const routerProperties: JsonObject = {
  name: text,
  hostname: text,
  isOnline: flag,
  syncStatus: text,
  cost: integer,
  noTraversal: flag,
  disabled: flag,
  supportedProtocols: protocols,
  appData: tags,
  capabilities: { type: 'array', items: text },
}
const routerRequired = Object.keys(routerProperties)

/** Schema of an edge router in responses to clients. */
const commonEdgeRouter: JsonObject = {
  type: 'object',
  properties: { ...routerProperties, version: text },
  required: routerRequired,
}

export const serviceEdgeRouters: NamedSchema = {
  name: 'serviceEdgeRouters',
  schema: wholeObject({ edgeRouters: { type: 'array', items: commonEdgeRouter } }),
}

export const currentIdentityEdgeRouter: NamedSchema = {
  name: 'currentIdentityEdgeRouterDetail',
  schema: {
    type: 'object',
    properties: {
      ...routerProperties,
      _links: links,
      version: text,
      createdAt: dateTime,
      id: text,
      tags,
      updatedAt: dateTime,
    },
    required: [...routerRequired, '_links', 'createdAt', 'id', 'tags', 'updatedAt'],
  },
}

export const serviceUpdates: NamedSchema = {
  name: 'currentApiSessionServiceUpdateList',
  schema: wholeObject({ lastChangeAt: dateTime }),
}

export const sessionCreate = objectSchema(
  'sessionCreate',
  {
    serviceId: { type: 'string', maxLength: 512 },
    type: { type: ['string', 'null'], enum: ['Dial', 'Bind', 'Invalid', '', null] },
    tags: { type: ['object', 'null'] },
  },
  ['serviceId'],
)

const stored = detailSchema(findEntity('session'))
const sessionProperties: JsonObject = {
  ...(stored['properties'] as JsonObject),
  type: dialBind,
  edgeRouters: arraySchema({
    type: 'object',
    properties: { ...routerProperties, urls: protocols },
    required: [...routerRequired, 'urls'],
  }),
}
const sessionRequired = [...(stored['required'] as readonly string[]), 'edgeRouters']

export const sessionDetail: NamedSchema = {
  name: 'sessionDetail',
  schema: { type: 'object', properties: sessionProperties, required: sessionRequired },
}

export const sessionManagementDetail: NamedSchema = {
  name: 'sessionManagementDetail',
  schema: {
    type: 'object',
    properties: { ...sessionProperties, servicePolicies: { type: 'array', items: entityRef } },
    required: [...sessionRequired, 'servicePolicies'],
  },
}

export const sessionRoutePath: NamedSchema = {
  name: 'sessionRoutePathDetail',
  schema: wholeObject({ routePath: { type: 'array', items: text } }),
}

export const policyAdvice: NamedSchema = {
  name: 'policyAdvice',
  schema: wholeObject({
    identity: entityRef,
    identityId: text,
    service: entityRef,
    serviceId: text,
    isBindAllowed: flag,
    isDialAllowed: flag,
    identityRouterCount: integer,
    serviceRouterCount: integer,
    commonRouters: arraySchema({
      type: 'object',
      properties: { ...(entityRef['properties'] as JsonObject), isOnline: flag },
      required: [...(entityRef['required'] as readonly string[]), 'isOnline'],
    }),
  }),
}

export const roleAttribute: NamedSchema = { name: 'roleAttribute', schema: text }

export const roleAttributeUsage: NamedSchema = {
  name: 'roleAttributeUsage',
  schema: wholeObject({
    roleAttribute: text,
    usage: {
      type: 'object',
      additionalProperties: wholeObject({
        count: integer,
        ids: { anyOf: [{ type: 'array', items: text }, { type: 'null' }] },
      }),
    },
  }),
}
