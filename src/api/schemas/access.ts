import { detailSchema } from '../../entities/schema.ts'
import { findEntity } from '../../entities/registry.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import {
  dateTimeSchema,
  entityRefSchema,
  booleanSchema,
  linksSchema,
  text,
  openObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { objectSchema } from './typed-schema.ts'
import { integer } from './envelope.ts'

const tags = { type: 'object', additionalProperties: true } as const
const dialBind = { type: 'string', enum: ['Dial', 'Bind'] } as const
const protocols = { type: 'object', additionalProperties: text } as const

const routerProperties: JsonObject = {
  name: text,
  hostname: text,
  isOnline: booleanSchema,
  syncStatus: text,
  cost: integer,
  noTraversal: booleanSchema,
  disabled: booleanSchema,
  supportedProtocols: protocols,
  appData: tags,
  capabilities: { type: 'array', items: text },
}
const routerRequired = Object.keys(routerProperties)

/** Schema of an edge router, for responses to clients. */
const commonEdgeRouter: JsonObject = {
  type: 'object',
  properties: { ...routerProperties, version: text },
  required: routerRequired,
}

export const serviceEdgeRoutersSchema: NamedSchema = {
  name: 'serviceEdgeRouters',
  schema: openObjectSchema({ edgeRouters: { type: 'array', items: commonEdgeRouter } }),
}

export const currentIdentityEdgeRouterSchema: NamedSchema = {
  name: 'currentIdentityEdgeRouterDetail',
  schema: {
    type: 'object',
    properties: {
      ...routerProperties,
      _links: linksSchema,
      version: text,
      createdAt: dateTimeSchema,
      id: text,
      tags,
      updatedAt: dateTimeSchema,
    },
    required: [...routerRequired, '_links', 'createdAt', 'id', 'tags', 'updatedAt'],
  },
}

export const serviceUpdatesSchema: NamedSchema = {
  name: 'currentApiSessionServiceUpdateList',
  schema: openObjectSchema({ lastChangeAt: dateTimeSchema }),
}

export const sessionCreateSchema = objectSchema(
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

export const sessionDetailSchema: NamedSchema = {
  name: 'sessionDetail',
  schema: { type: 'object', properties: sessionProperties, required: sessionRequired },
}

export const sessionManagementDetailSchema: NamedSchema = {
  name: 'sessionManagementDetail',
  schema: {
    type: 'object',
    properties: {
      ...sessionProperties,
      servicePolicies: { type: 'array', items: entityRefSchema },
    },
    required: [...sessionRequired, 'servicePolicies'],
  },
}

export const sessionRoutePathSchema: NamedSchema = {
  name: 'sessionRoutePathDetail',
  schema: openObjectSchema({ routePath: { type: 'array', items: text } }),
}

export const policyAdviceSchema: NamedSchema = {
  name: 'policyAdvice',
  schema: openObjectSchema({
    identity: entityRefSchema,
    identityId: text,
    service: entityRefSchema,
    serviceId: text,
    isBindAllowed: booleanSchema,
    isDialAllowed: booleanSchema,
    identityRouterCount: integer,
    serviceRouterCount: integer,
    commonRouters: arraySchema({
      type: 'object',
      properties: { ...(entityRefSchema['properties'] as JsonObject), isOnline: booleanSchema },
      required: [...(entityRefSchema['required'] as readonly string[]), 'isOnline'],
    }),
  }),
}

export const roleAttributeSchema: NamedSchema = { name: 'roleAttribute', schema: text }

export const roleAttributeUsageSchema: NamedSchema = {
  name: 'roleAttributeUsage',
  schema: openObjectSchema({
    roleAttribute: text,
    usage: {
      type: 'object',
      additionalProperties: openObjectSchema({
        count: integer,
        ids: { anyOf: [{ type: 'array', items: text }, { type: 'null' }] },
      }),
    },
  }),
}
