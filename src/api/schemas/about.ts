import { oidcSettings } from '../../entities/kinds/controller-setting.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import {
  dateTimeSchema,
  booleanSchema,
  text,
  openObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'
import { baseRecordProperties, baseRecordRequired, integer, texts } from './envelope.ts'

// Schemas of the information that a controller provides about itself: version, capabilities,
// health, specifications.

const number = { type: 'number' } as const

/** The health document of a node (src/ports/node-health.ts). */
const nodeHealthSchema = openObjectSchema({
  id: text,
  clusterId: text,
  generation: integer,
  version: text,
  startedAtMs: number,
  role: text,
  term: integer,
  leaderId: { type: ['string', 'null'] },
  leaderContactMs: number,
  commit: integer,
  applied: integer,
  persisted: integer,
  lagEntries: integer,
  lagMs: number,
  fsyncP99Ms: number,
  loopDelayP99Ms: openObjectSchema({ main: number, raft: number }),
  members: arraySchema(
    openObjectSchema({
      id: text,
      voter: booleanSchema,
      role: text,
      connected: booleanSchema,
      lastContactMs: { type: ['number', 'null'] },
      commit: integer,
      applied: integer,
      lagEntries: integer,
      fsyncP99Ms: number,
      loopDelayP99Ms: number,
      clockOffsetMs: number,
    }),
  ),
  voters: integer,
  votersConnected: integer,
  failureTolerance: integer,
  nextRisk: text,
  alarms: arraySchema(
    openObjectSchema({ code: text, text, sinceMs: number, isCritical: booleanSchema }),
  ),
})

const apiVersions = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    additionalProperties: openObjectSchema({ path: text, version: text, apiBaseUrls: texts }, [
      'version',
      'apiBaseUrls',
    ]),
  },
} as const

export const versionSchema: NamedSchema = {
  name: 'version',
  schema: openObjectSchema({
    apiVersions,
    buildDate: text,
    capabilities: texts,
    revision: text,
    runtimeVersion: text,
    version: text,
  }),
}

export const capabilitySchema: NamedSchema = { name: 'capability', schema: text }

export const protocolsSchema: NamedSchema = {
  name: 'listProtocols',
  schema: {
    type: 'object',
    additionalProperties: openObjectSchema({ address: text }),
  },
}

export const summarySchema: NamedSchema = {
  name: 'listSummaryCounts',
  schema: { type: 'object', additionalProperties: integer },
}

export const specSchema: NamedSchema = {
  name: 'specDetail',
  schema: {
    type: 'object',
    properties: { ...baseRecordProperties, name: text },
    required: [...baseRecordRequired, 'name'],
  },
}

export const specBodySchema: NamedSchema = { name: 'specBody', schema: { type: 'object' } }

export const controllerSchema: NamedSchema = {
  name: 'controllerDetail',
  schema: {
    type: 'object',
    properties: {
      ...baseRecordProperties,
      apiAddresses: {
        type: 'object',
        additionalProperties: arraySchema({
          type: 'object',
          properties: { url: text, version: text },
        }),
      },
      certPem: text,
      ctrlAddress: text,
      fingerprint: text,
      isOnline: booleanSchema,
      isPreferredLeader: booleanSchema,
      lastJoinedAt: dateTimeSchema,
      name: text,
    },
    required: [...baseRecordRequired, 'name', 'certPem', 'fingerprint', 'isOnline', 'lastJoinedAt'],
  },
}

const settings = { type: 'object', properties: { oidc: oidcSettings } } as const
export const effectiveSettingsSchema: NamedSchema = {
  name: 'controllerSettingEffectiveDetail',
  schema: {
    type: 'object',
    properties: { ...baseRecordProperties, effective: settings, instance: settings },
    required: [...baseRecordRequired, 'effective', 'instance'],
  },
}

export const networkJwtResponseSchema: NamedSchema = {
  name: 'networkJWT',
  schema: openObjectSchema({ name: text, token: text }),
}

export const healthSchema: NamedSchema = {
  name: 'health',
  schema: openObjectSchema(
    {
      healthy: booleanSchema,
      checks: arraySchema(
        openObjectSchema(
          {
            id: text,
            healthy: booleanSchema,
            lastCheckTime: dateTimeSchema,
            lastCheckDuration: text,
            detail: text,
          },
          ['detail'],
        ),
      ),
      node: nodeHealthSchema,
    },
    ['node'],
  ),
}

export const readinessSchema: NamedSchema = {
  name: 'readiness',
  schema: openObjectSchema({ ready: booleanSchema }),
}

export const metricsTextSchema: NamedSchema = { name: 'metricsText', schema: text }
export const openapiSchema: NamedSchema = { name: 'openapiDocument', schema: { type: 'object' } }
