import { detailSchema } from '../../entities/schema.ts'
import { entityNamed } from '../../entities/registry.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { dateTime, entityRef, flag, links, text } from '../../entities/shapes.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { objectSchema } from './typed-schema.ts'

const integer = { type: 'integer' } as const
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

/** What a client is told of an edge router. */
export const commonEdgeRouter: JsonObject = {
  type: 'object',
  properties: { ...routerProperties, version: text },
  required: routerRequired,
}

export const serviceEdgeRouters: NamedSchema = {
  name: 'serviceEdgeRouters',
  schema: {
    type: 'object',
    properties: { edgeRouters: { type: 'array', items: commonEdgeRouter } },
    required: ['edgeRouters'],
  },
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
  schema: {
    type: 'object',
    properties: { lastChangeAt: dateTime },
    required: ['lastChangeAt'],
  },
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

const stored = detailSchema(entityNamed('session'))
const sessionProperties: JsonObject = {
  ...(stored['properties'] as JsonObject),
  type: dialBind,
  edgeRouters: {
    type: 'array',
    items: {
      type: 'object',
      properties: { ...routerProperties, urls: protocols },
      required: [...routerRequired, 'urls'],
    },
  },
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
  schema: {
    type: 'object',
    properties: { routePath: { type: 'array', items: text } },
    required: ['routePath'],
  },
}

export const policyAdvice: NamedSchema = {
  name: 'policyAdvice',
  schema: {
    type: 'object',
    properties: {
      identity: entityRef,
      identityId: text,
      service: entityRef,
      serviceId: text,
      isBindAllowed: flag,
      isDialAllowed: flag,
      identityRouterCount: integer,
      serviceRouterCount: integer,
      commonRouters: {
        type: 'array',
        items: {
          type: 'object',
          properties: { ...(entityRef['properties'] as JsonObject), isOnline: flag },
          required: [...(entityRef['required'] as readonly string[]), 'isOnline'],
        },
      },
    },
    required: [
      'identity',
      'identityId',
      'service',
      'serviceId',
      'isBindAllowed',
      'isDialAllowed',
      'identityRouterCount',
      'serviceRouterCount',
      'commonRouters',
    ],
  },
}

export const roleAttribute: NamedSchema = { name: 'roleAttribute', schema: text }

export const roleAttributeUsage: NamedSchema = {
  name: 'roleAttributeUsage',
  schema: {
    type: 'object',
    properties: {
      roleAttribute: text,
      usage: {
        type: 'object',
        additionalProperties: {
          type: 'object',
          properties: {
            count: integer,
            ids: { anyOf: [{ type: 'array', items: text }, { type: 'null' }] },
          },
          required: ['count', 'ids'],
        },
      },
    },
    required: ['roleAttribute', 'usage'],
  },
}
