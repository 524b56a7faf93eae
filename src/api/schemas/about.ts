import { oidcSettings } from '../../entities/kinds/controller-setting.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { dateTime, flag, text, wholeObject, arraySchema } from '../../entities/shapes.ts'
import { baseProperties, baseRequired, integer, texts } from './envelope.ts'

// Schemas of the information that a controller provides about itself: version, capabilities,
// health, specifications.

const number = { type: 'number' } as const

/** The health document of a node (src/ports/node-health.ts). */
const nodeHealthSchema = wholeObject({
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
  loopDelayP99Ms: wholeObject({ main: number, raft: number }),
  members: arraySchema(
    wholeObject({
      id: text,
      voter: flag,
      role: text,
      connected: flag,
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
  alarms: arraySchema(wholeObject({ code: text, text, sinceMs: number, isCritical: flag })),
})

const apiVersions = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    additionalProperties: wholeObject({ path: text, version: text, apiBaseUrls: texts }, [
      'version',
      'apiBaseUrls',
    ]),
  },
} as const

export const versionSchema: NamedSchema = {
  name: 'version',
  schema: wholeObject({
    apiVersions,
    buildDate: text,
    capabilities: texts,
    revision: text,
    runtimeVersion: text,
    version: text,
  }),
}

export const capability: NamedSchema = { name: 'capability', schema: text }

export const protocols: NamedSchema = {
  name: 'listProtocols',
  schema: {
    type: 'object',
    additionalProperties: wholeObject({ address: text }),
  },
}

export const summary: NamedSchema = {
  name: 'listSummaryCounts',
  schema: { type: 'object', additionalProperties: integer },
}

export const spec: NamedSchema = {
  name: 'specDetail',
  schema: {
    type: 'object',
    properties: { ...baseProperties, name: text },
    required: [...baseRequired, 'name'],
  },
}

export const specBodySchema: NamedSchema = { name: 'specBody', schema: { type: 'object' } }

export const controller: NamedSchema = {
  name: 'controllerDetail',
  schema: {
    type: 'object',
    properties: {
      ...baseProperties,
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
      isOnline: flag,
      isPreferredLeader: flag,
      lastJoinedAt: dateTime,
      name: text,
    },
    required: [...baseRequired, 'name', 'certPem', 'fingerprint', 'isOnline', 'lastJoinedAt'],
  },
}

const settings = { type: 'object', properties: { oidc: oidcSettings } } as const
export const effectiveSettings: NamedSchema = {
  name: 'controllerSettingEffectiveDetail',
  schema: {
    type: 'object',
    properties: { ...baseProperties, effective: settings, instance: settings },
    required: [...baseRequired, 'effective', 'instance'],
  },
}

export const networkJwtAnswer: NamedSchema = {
  name: 'networkJWT',
  schema: wholeObject({ name: text, token: text }),
}

export const health: NamedSchema = {
  name: 'health',
  schema: wholeObject(
    {
      healthy: flag,
      checks: arraySchema(
        wholeObject(
          {
            id: text,
            healthy: flag,
            lastCheckTime: dateTime,
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

export const readiness: NamedSchema = {
  name: 'readiness',
  schema: wholeObject({ ready: flag }),
}

export const metricsText: NamedSchema = { name: 'metricsText', schema: text }
export const openapiSchema: NamedSchema = { name: 'openapiDocument', schema: { type: 'object' } }
