import { oidcSettingsSchema } from '../../entities/kinds/controller-setting.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import {
  dateTimeSchema,
  booleanSchema,
  textSchema,
  openObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'
import {
  baseRecordProperties,
  baseRecordRequired,
  integerSchema,
  textListSchema,
} from './envelope.ts'

// Schemas of the information that a controller provides about itself: version, capabilities,
// health, specifications.

const number = { type: 'number' } as const

/** The health document of a node (src/ports/node-health.ts). */
const nodeHealthSchema = openObjectSchema({
  id: textSchema,
  clusterId: textSchema,
  generation: integerSchema,
  version: textSchema,
  startedAtMs: number,
  role: textSchema,
  term: integerSchema,
  leaderId: { type: ['string', 'null'] },
  leaderContactMs: number,
  commit: integerSchema,
  applied: integerSchema,
  persisted: integerSchema,
  lagEntries: integerSchema,
  lagMs: number,
  fsyncP99Ms: number,
  loopDelayP99Ms: openObjectSchema({ main: number, raft: number }),
  members: arraySchema(
    openObjectSchema({
      id: textSchema,
      voter: booleanSchema,
      role: textSchema,
      connected: booleanSchema,
      lastContactMs: { type: ['number', 'null'] },
      commit: integerSchema,
      applied: integerSchema,
      lagEntries: integerSchema,
      fsyncP99Ms: number,
      loopDelayP99Ms: number,
      clockOffsetMs: number,
    }),
  ),
  voters: integerSchema,
  votersConnected: integerSchema,
  failureTolerance: integerSchema,
  failureToleranceMax: integerSchema,
  nextRisk: textSchema,
  alarms: arraySchema(
    openObjectSchema({
      code: textSchema,
      text: textSchema,
      sinceMs: number,
      isCritical: booleanSchema,
    }),
  ),
})

const apiVersions = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    additionalProperties: openObjectSchema(
      { path: textSchema, version: textSchema, apiBaseUrls: textListSchema },
      ['version', 'apiBaseUrls'],
    ),
  },
} as const

export const versionSchema: NamedSchema = {
  name: 'version',
  schema: openObjectSchema({
    apiVersions,
    buildDate: textSchema,
    capabilities: textListSchema,
    revision: textSchema,
    runtimeVersion: textSchema,
    version: textSchema,
  }),
}

export const capabilitySchema: NamedSchema = { name: 'capability', schema: textSchema }

export const protocolsSchema: NamedSchema = {
  name: 'listProtocols',
  schema: {
    type: 'object',
    additionalProperties: openObjectSchema({ address: textSchema }),
  },
}

export const summarySchema: NamedSchema = {
  name: 'listSummaryCounts',
  schema: { type: 'object', additionalProperties: integerSchema },
}

export const specSchema: NamedSchema = {
  name: 'specDetail',
  schema: {
    type: 'object',
    properties: { ...baseRecordProperties, name: textSchema },
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
          properties: { url: textSchema, version: textSchema },
        }),
      },
      certPem: textSchema,
      ctrlAddress: textSchema,
      fingerprint: textSchema,
      isOnline: booleanSchema,
      isPreferredLeader: booleanSchema,
      lastJoinedAt: dateTimeSchema,
      name: textSchema,
    },
    required: [...baseRecordRequired, 'name', 'certPem', 'fingerprint', 'isOnline', 'lastJoinedAt'],
  },
}

const settings = { type: 'object', properties: { oidc: oidcSettingsSchema } } as const
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
  schema: openObjectSchema({ name: textSchema, token: textSchema }),
}

export const healthSchema: NamedSchema = {
  name: 'health',
  schema: openObjectSchema(
    {
      healthy: booleanSchema,
      checks: arraySchema(
        openObjectSchema(
          {
            id: textSchema,
            healthy: booleanSchema,
            lastCheckTime: dateTimeSchema,
            lastCheckDuration: textSchema,
            detail: textSchema,
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

export const metricsTextSchema: NamedSchema = { name: 'metricsText', schema: textSchema }
export const openapiSchema: NamedSchema = { name: 'openapiDocument', schema: { type: 'object' } }
