import { passwordSchema, usernameSchema } from '../../entities/authenticator.ts'
import { expirySchema } from '../../entities/enrollment.ts'
import { oidcSettings } from '../../entities/controller-setting.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { disableMinutesMax } from '../../fsm/commands/identity.ts'
import type { JsonObject } from '../../lib/canonical-json.ts'
import { defaultLimits } from '../limits.ts'
import { emptySchema } from '../../entities/schema.ts'
import { nodeHealth } from './health-schema.ts'
import { dateTime, entityRef, envInfo, flag, links, sdkInfo, text } from '../../entities/shapes.ts'

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
            properties: {
              field: text,
              reason: text,
              value: {},
              code: text,
              message: text,
              data: { type: 'object' },
            },
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

export const baseProperties = {
  _links: links,
  createdAt: dateTime,
  id: text,
  tags: { type: 'object' },
  updatedAt: dateTime,
} as const
export const baseRequired = ['_links', 'createdAt', 'id', 'updatedAt'] as const

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
      password: passwordSchema,
      sdkInfo: { ...sdkInfo, type: ['object', 'null'] },
      username: usernameSchema,
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

const ownAuthenticatorProperties = {
  currentPassword: passwordSchema,
  tags: { type: ['object', 'null'], additionalProperties: true },
} as const

export const ownAuthenticatorUpdate: NamedSchema = {
  name: 'authenticatorUpdateWithCurrent',
  schema: {
    type: 'object',
    properties: {
      ...ownAuthenticatorProperties,
      password: passwordSchema,
      username: usernameSchema,
    },
    required: ['currentPassword', 'password', 'username'],
  },
}

export const ownAuthenticatorPatch: NamedSchema = {
  name: 'authenticatorPatchWithCurrent',
  schema: {
    type: 'object',
    properties: {
      ...ownAuthenticatorProperties,
      password: { ...passwordSchema, type: ['string', 'null'] },
      username: { ...usernameSchema, type: ['string', 'null'] },
    },
    required: ['currentPassword'],
  },
}

export const disableParams: NamedSchema = {
  name: 'disableParams',
  schema: {
    type: 'object',
    properties: { durationMinutes: { type: 'integer', maximum: disableMinutesMax } },
    required: ['durationMinutes'],
  },
}

/** A PEM text; how much of it is bounded where it is read. */
export const caVerification: NamedSchema = { name: 'caVerification', schema: text }
/** A compact JWT. */
export const caJwt: NamedSchema = { name: 'caJwt', schema: text }
export const estCertificates: NamedSchema = { name: 'estCertificates', schema: text }

export const requestExtend: NamedSchema = {
  name: 'requestExtendAuthenticator',
  schema: { type: 'object', properties: { rollKeys: { type: ['boolean', 'null'] } } },
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

export const traceSpec: NamedSchema = {
  name: 'traceSpec',
  schema: {
    type: 'object',
    properties: {
      channels: {
        type: ['array', 'null'],
        maxItems: 64,
        items: { type: 'string', maxLength: 256 },
      },
      duration: { type: ['string', 'null'], maxLength: 64 },
      enabled: { type: ['boolean', 'null'] },
      traceId: { type: ['string', 'null'], maxLength: 128 },
    },
  },
}
export const traceDetail: NamedSchema = {
  name: 'traceDetail',
  schema: {
    type: 'object',
    properties: { enabled: flag, traceId: text, until: dateTime },
    required: ['enabled', 'traceId', 'until'],
  },
}

export const serviceConfigsAssign: NamedSchema = {
  name: 'serviceConfigsAssignList',
  schema: {
    type: 'array',
    maxItems: defaultLimits.serviceConfigsMax,
    items: {
      type: 'object',
      properties: {
        configId: { type: 'string', maxLength: 128 },
        serviceId: { type: 'string', maxLength: 128 },
      },
      required: ['serviceId', 'configId'],
    },
  },
}

/** The one member of two bodies that the API family calls differently. */
export function enrollmentExpiry(name: 'enrollmentRefresh' | 'reEnroll'): NamedSchema {
  return {
    name,
    schema: {
      type: 'object',
      properties: { expiresAt: expirySchema },
      required: ['expiresAt'],
    },
  }
}

export const networkJwt: NamedSchema = {
  name: 'networkJWT',
  schema: {
    type: 'object',
    properties: { name: text, token: text },
    required: ['name', 'token'],
  },
}

const whole = { type: 'integer', minimum: 0 } as const
export const link: NamedSchema = {
  name: 'linkDetail',
  schema: {
    type: 'object',
    properties: {
      id: text,
      protocol: text,
      sourceRouter: entityRef,
      destRouter: entityRef,
      state: { type: 'string', enum: ['Pending', 'Connected'] },
      down: flag,
      iteration: whole,
      staticCost: whole,
      cost: whole,
      sourceLatency: whole,
      destLatency: whole,
      connections: {
        type: 'array',
        items: {
          type: 'object',
          properties: { type: text, source: text, dest: text },
          required: ['type', 'source', 'dest'],
        },
      },
    },
    required: [
      ...['id', 'protocol', 'sourceRouter', 'destRouter', 'state', 'down', 'iteration'],
      ...['staticCost', 'cost', 'sourceLatency', 'destLatency', 'connections'],
    ],
  },
}
export const circuit: NamedSchema = {
  name: 'circuitDetail',
  schema: {
    type: 'object',
    properties: {
      ...baseProperties,
      clientId: text,
      service: entityRef,
      terminator: entityRef,
      path: {
        type: 'object',
        properties: {
          nodes: { type: 'array', items: entityRef },
          links: { type: 'array', items: entityRef },
        },
        required: ['nodes', 'links'],
      },
    },
    required: [...baseRequired, 'clientId', 'service', 'terminator', 'path'],
  },
}

export const linkPatch: NamedSchema = {
  name: 'linkPatch',
  schema: {
    type: 'object',
    properties: {
      down: { type: ['boolean', 'null'] },
      staticCost: { type: ['integer', 'null'], minimum: 0 },
    },
  },
}

export const circuitDelete: NamedSchema = {
  name: 'circuitDelete',
  schema: { type: 'object', properties: { immediate: { type: ['boolean', 'null'] } } },
}

const refWithUrlName = {
  ...entityRef,
  properties: { ...(entityRef['properties'] as JsonObject), urlName: text },
} as const
export const serviceConfig: NamedSchema = {
  name: 'serviceConfigDetail',
  schema: {
    type: 'object',
    properties: {
      config: refWithUrlName,
      configId: text,
      service: refWithUrlName,
      serviceId: text,
    },
    required: ['serviceId', 'service', 'configId', 'config'],
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

const memberId = { type: 'string', minLength: 1, maxLength: 64 } as const
const confirmation = { type: ['string', 'null'], maxLength: 256 } as const

export const memberAddition: NamedSchema = {
  name: 'clusterMemberAdd',
  schema: {
    type: 'object',
    properties: {
      address: { type: 'string', minLength: 1, maxLength: 300 },
      isVoter: flag,
      confirmation,
    },
    required: ['address'],
  },
}

export const memberChoice: NamedSchema = {
  name: 'clusterMemberChoice',
  schema: { type: 'object', properties: { id: memberId, confirmation }, required: ['id'] },
}

export const memberRemoval: NamedSchema = {
  name: 'clusterMemberRemove',
  schema: {
    type: 'object',
    properties: { id: memberId, isCompromised: flag, confirmation },
    required: ['id'],
  },
}

export const memberReplacement: NamedSchema = {
  name: 'clusterMemberReplace',
  schema: {
    type: 'object',
    properties: { oldId: memberId, newId: memberId, confirmation },
    required: ['oldId', 'newId'],
  },
}

const changeProperties = {
  verb: { type: 'string', enum: ['promote', 'demote', 'remove', 'replace'] },
  id: memberId,
  isCompromised: flag,
  oldId: memberId,
  newId: memberId,
} as const

export const plannedChange: NamedSchema = {
  name: 'clusterChange',
  schema: { type: 'object', properties: changeProperties, required: ['verb'] },
}

export const changePlan: NamedSchema = {
  name: 'clusterChangePlan',
  schema: {
    type: 'object',
    properties: {
      change: { type: 'object', properties: changeProperties, required: ['verb'] },
      isNeeded: flag,
      votersBefore: texts,
      votersAfter: texts,
      toleranceBefore: integer,
      toleranceAfter: integer,
      warnings: texts,
      confirmation: { type: ['string', 'null'] },
    },
    required: [
      'change',
      'isNeeded',
      'votersBefore',
      'votersAfter',
      'toleranceBefore',
      'toleranceAfter',
      'warnings',
      'confirmation',
    ],
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
          properties: {
            id: text,
            healthy: flag,
            lastCheckTime: dateTime,
            lastCheckDuration: text,
            detail: text,
          },
          required: ['id', 'healthy', 'lastCheckTime', 'lastCheckDuration'],
        },
      },
      node: nodeHealth,
    },
    required: ['healthy', 'checks'],
  },
}

export const readiness: NamedSchema = {
  name: 'readiness',
  schema: { type: 'object', properties: { ready: flag }, required: ['ready'] },
}

export const metricsText: NamedSchema = { name: 'metricsText', schema: text }
export const openapiDocument: NamedSchema = { name: 'openapiDocument', schema: { type: 'object' } }
