import { detailSchema } from '../../entities/schema.ts'
import { findEntity } from '../../entities/registry.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import {
  dateTimeSchema,
  entityRefSchema,
  booleanSchema,
  linksSchema,
  textSchema,
  openObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { objectSchema } from './typed-schema.ts'
import { integerSchema } from './envelope.ts'

const tags = { type: 'object', additionalProperties: true } as const
const dialBind = { type: 'string', enum: ['Dial', 'Bind'] } as const
const protocols = { type: 'object', additionalProperties: textSchema } as const

const routerProperties: JsonObject = {
  name: textSchema,
  hostname: textSchema,
  isOnline: booleanSchema,
  syncStatus: textSchema,
  cost: integerSchema,
  noTraversal: booleanSchema,
  disabled: booleanSchema,
  supportedProtocols: protocols,
  appData: tags,
  capabilities: { type: 'array', items: textSchema },
}
const routerRequired = Object.keys(routerProperties)

/** Schema of an edge router, for responses to clients. */
const commonEdgeRouter: JsonObject = {
  type: 'object',
  properties: { ...routerProperties, version: textSchema },
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
      version: textSchema,
      createdAt: dateTimeSchema,
      id: textSchema,
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
  schema: openObjectSchema({ routePath: { type: 'array', items: textSchema } }),
}

export const policyAdviceSchema: NamedSchema = {
  name: 'policyAdvice',
  schema: openObjectSchema({
    identity: entityRefSchema,
    identityId: textSchema,
    service: entityRefSchema,
    serviceId: textSchema,
    isBindAllowed: booleanSchema,
    isDialAllowed: booleanSchema,
    identityRouterCount: integerSchema,
    serviceRouterCount: integerSchema,
    commonRouters: arraySchema({
      type: 'object',
      properties: { ...(entityRefSchema['properties'] as JsonObject), isOnline: booleanSchema },
      required: [...(entityRefSchema['required'] as readonly string[]), 'isOnline'],
    }),
  }),
}

export const roleAttributeSchema: NamedSchema = { name: 'roleAttribute', schema: textSchema }

export const roleAttributeUsageSchema: NamedSchema = {
  name: 'roleAttributeUsage',
  schema: openObjectSchema({
    roleAttribute: textSchema,
    usage: {
      type: 'object',
      additionalProperties: openObjectSchema({
        count: integerSchema,
        ids: { anyOf: [{ type: 'array', items: textSchema }, { type: 'null' }] },
      }),
    },
  }),
}
