import type { NamedSchema } from '../entities/operations.ts'
import { emptySchema } from '../entities/schema.ts'
import { nodeHealth } from './health-schema.ts'
import { dateTime, entityRef, envInfo, flag, links, sdkInfo, text } from '../entities/shapes.ts'

/** JSON Schemas of the operations that no descriptor gives. */
const integer = { type: 'integer' } as const
const texts = { type: 'array', items: text } as const

export const nothing: NamedSchema = { name: 'empty', schema: emptySchema }

export const meta: NamedSchema = {
  name: 'meta',
  schema: {
    type: 'object',
    properties: {
      apiEnrollmentVersion: text,
      apiVersion: text,
      filterableFields: texts,
      ignoredFields: texts,
      pagination: {
        type: 'object',
        properties: { limit: integer, offset: integer, totalCount: integer },
        required: ['limit', 'offset', 'totalCount'],
      },
    },
    required: ['apiEnrollmentVersion', 'apiVersion'],
    additionalProperties: false,
  },
}

export const errorEnvelope: NamedSchema = {
  name: 'apiErrorEnvelope',
  schema: {
    type: 'object',
    properties: {
      error: {
        type: 'object',
        properties: {
          code: text,
          message: text,
          requestId: text,
          cause: {
            type: 'object',
            properties: { field: text, reason: text, value: {}, code: text, message: text },
          },
          data: { type: 'object' },
        },
        required: ['code', 'message', 'requestId'],
        additionalProperties: false,
      },
      meta: meta.schema,
    },
    required: ['error', 'meta'],
    additionalProperties: false,
  },
}

const apiVersions = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    additionalProperties: {
      type: 'object',
      properties: { path: text, version: text, apiBaseUrls: texts },
      required: ['path'],
    },
  },
} as const

export const version: NamedSchema = {
  name: 'version',
  schema: {
    type: 'object',
    properties: {
      apiVersions,
      buildDate: text,
      capabilities: texts,
      revision: text,
      runtimeVersion: text,
      version: text,
    },
    required: ['apiVersions', 'buildDate', 'capabilities', 'revision', 'runtimeVersion', 'version'],
  },
}

export const capability: NamedSchema = { name: 'capability', schema: text }

export const protocols: NamedSchema = {
  name: 'listProtocols',
  schema: {
    type: 'object',
    additionalProperties: { type: 'object', properties: { address: text }, required: ['address'] },
  },
}

export const summary: NamedSchema = {
  name: 'listSummaryCounts',
  schema: { type: 'object', additionalProperties: integer },
}

const baseProperties = {
  _links: links,
  createdAt: dateTime,
  id: text,
  tags: { type: 'object' },
  updatedAt: dateTime,
} as const
const baseRequired = ['_links', 'createdAt', 'id', 'updatedAt'] as const

export const spec: NamedSchema = {
  name: 'specDetail',
  schema: {
    type: 'object',
    properties: { ...baseProperties, name: text },
    required: [...baseRequired, 'name'],
  },
}

export const specBody: NamedSchema = { name: 'specBody', schema: { type: 'object' } }

export const controller: NamedSchema = {
  name: 'controllerDetail',
  schema: {
    type: 'object',
    properties: {
      ...baseProperties,
      apiAddresses: {
        type: 'object',
        additionalProperties: {
          type: 'array',
          items: { type: 'object', properties: { url: text, version: text } },
        },
      },
      certPem: text,
      ctrlAddress: text,
      fingerprint: text,
      isOnline: flag,
      isPreferredLeader: flag,
      lastJoinedAt: dateTime,
      name: text,
    },
    required: [...baseRequired, 'name', 'certPem', 'fingerprint', 'isOnline', 'lastJoinedAt'],
  },
}

export const credentials: NamedSchema = {
  name: 'authenticate',
  schema: {
    type: 'object',
    properties: {
      configTypes: { type: ['array', 'null'], items: text, maxItems: 100 },
      envInfo: { ...envInfo, type: ['object', 'null'] },
      password: { type: 'string', minLength: 5, maxLength: 100 },
      sdkInfo: { ...sdkInfo, type: ['object', 'null'] },
      username: { type: 'string', minLength: 4, maxLength: 100 },
    },
  },
}

const sessionProperties = {
  ...baseProperties,
  authQueries: { type: 'array', items: { type: 'object' } },
  authenticatorId: text,
  cachedLastActivityAt: dateTime,
  configTypes: texts,
  expirationSeconds: integer,
  expiresAt: dateTime,
  identity: entityRef,
  identityId: text,
  improperClientCertChain: flag,
  ipAddress: text,
  isCertExtendRequested: flag,
  isCertExtendable: flag,
  isCertKeyRollRequested: flag,
  isMfaComplete: flag,
  isMfaRequired: flag,
  lastActivityAt: dateTime,
  token: text,
} as const
const sessionRequired = [
  ...baseRequired,
  'authQueries',
  'authenticatorId',
  'configTypes',
  'identity',
  'identityId',
  'ipAddress',
  'isCertExtendable',
  'isMfaComplete',
  'isMfaRequired',
  'token',
] as const

export const currentSession: NamedSchema = {
  name: 'currentApiSessionDetail',
  schema: {
    type: 'object',
    properties: sessionProperties,
    required: [...sessionRequired, 'expirationSeconds', 'expiresAt'],
  },
}

const { expirationSeconds, expiresAt, ...listedSessionProperties } = sessionProperties
export const session: NamedSchema = {
  name: 'apiSessionDetail',
  schema: {
    type: 'object',
    properties: listedSessionProperties,
    required: [...sessionRequired],
  },
}

export const member: NamedSchema = {
  name: 'clusterMember',
  schema: {
    type: 'object',
    properties: {
      id: text,
      address: text,
      voter: flag,
      leader: flag,
      connected: flag,
      version: text,
      readOnly: flag,
      preferredLeader: flag,
    },
    required: ['id', 'address', 'voter', 'leader', 'connected', 'version', 'readOnly'],
  },
}

export const members: NamedSchema = {
  name: 'clusterMembers',
  schema: {
    type: 'object',
    properties: { data: { type: 'array', items: member.schema } },
    required: ['data'],
  },
}

export const leadershipTransfer: NamedSchema = {
  name: 'transferLeadership',
  schema: {
    type: 'object',
    properties: { newLeaderId: { type: ['string', 'null'], maxLength: 256 } },
  },
}

export const health: NamedSchema = {
  name: 'health',
  schema: {
    type: 'object',
    properties: {
      healthy: flag,
      checks: {
        type: 'array',
        items: {
          type: 'object',
          properties: { id: text, healthy: flag, detail: text },
          required: ['id', 'healthy'],
        },
      },
      node: nodeHealth,
    },
    required: ['healthy', 'checks'],
  },
}

export const metricsText: NamedSchema = { name: 'metricsText', schema: text }
export const openapiDocument: NamedSchema = { name: 'openapiDocument', schema: { type: 'object' } }
