import { crud } from './crud.ts'
import { defineEntity } from './define.ts'
import type { EntityOf } from './define.ts'
import {
  attributes,
  boolean,
  choice,
  computed,
  empty,
  integer,
  map,
  nameText,
  object,
  optionalText,
  reference,
  texts,
  timestamp,
} from './fields.ts'
import * as shapes from './shapes.ts'

/** What an identity that is no administrator may be given; `controllers` can only be read, `ops` not created. */
const kinds = [
  'auth-policy',
  'ca',
  'config',
  'config-type',
  'edge-router-policy',
  'enrollment',
  'external-jwt-signer',
  'identity',
  'posture-check',
  'router',
  'service',
  'service-edge-router-policy',
  'service-policy',
  'terminator',
] as const
export const grantablePermissions: readonly string[] = [
  'admin_readonly',
  'controllers',
  'controllers.read',
  'ops',
  'ops.read',
  'ops.update',
  'ops.delete',
  ...kinds.flatMap((kind) => [
    kind,
    ...['read', 'create', 'update', 'delete'].map((action) => `${kind}.${action}`),
  ]),
].sort()

const cost = { type: 'integer', minimum: 0, maximum: 65_535 } as const
const precedences = ['default', 'required', 'failed'] as const

/** A person, a device or a program that may hold a session. */
export const identity = defineEntity({
  name: 'identity',
  plural: 'identities',
  operations: {
    management: crud('identity'),
  },
  fields: {
    name: nameText({ unique: `duplicate value '{value}' in unique index on identities store` }),
    typeId: reference('identityType', 'refuse', { settable: 'never', otherwise: 'Default' }),
    isAdmin: boolean({ required: true }),
    isDefaultAdmin: boolean({ settable: 'never' }),
    authPolicyId: reference('authPolicy', 'refuse', { otherwise: 'default' }),
    externalId: optionalText({ unique: 'externalId must be unique' }),
    roleAttributes: attributes(),
    appData: map(),
    defaultHostingCost: integer({ maximum: cost.maximum }),
    defaultHostingPrecedence: choice(precedences, { otherwise: 'default' }),
    serviceHostingCosts: map<number>({ values: cost, keysOf: 'service' }),
    serviceHostingPrecedences: map<string>({
      values: { type: 'string', enum: precedences },
      keysOf: 'service',
    }),
    permissions: texts({ values: grantablePermissions }),
    disabledAt: timestamp({ settable: 'never', shown: 'whenSet' }),
    disabledUntil: timestamp({ settable: 'never', shown: 'whenSet' }),
    envInfo: object(shapes.envInfo, {}, { settable: 'never' }),
    sdkInfo: object(shapes.sdkInfo, {}, { settable: 'never' }),
    type: computed({ from: 'entityRef', to: 'identityType', by: 'typeId' }, shapes.entityRef),
    authPolicy: computed(
      { from: 'entityRef', to: 'authPolicy', by: 'authPolicyId' },
      shapes.nullableEntityRef,
    ),
    authenticators: computed(
      {
        from: 'byKey',
        of: 'authenticator',
        by: 'identityId',
        key: 'method',
        shows: { cert: ['fingerprint'], updb: ['username'] },
      },
      shapes.identityAuthenticators,
    ),
    disabled: computed(
      { from: 'isWithin', since: 'disabledAt', until: 'disabledUntil' },
      shapes.flag,
    ),
    hasApiSession: computed(
      { from: 'isReferenced', of: 'apiSession', by: 'identityId' },
      shapes.flag,
    ),
    enrollment: computed(
      {
        from: 'byKey',
        of: 'enrollment',
        by: 'identityId',
        key: 'method',
        shows: {
          ott: ['expiresAt', 'jwt', 'token'],
          ottca: ['ca', 'caId', 'expiresAt', 'jwt', 'token'],
          updb: ['expiresAt', 'jwt', 'token'],
        },
      },
      shapes.identityEnrollments,
    ),
    isMfaEnabled: empty(false, shapes.flag),
    hasEdgeRouterConnection: empty(false, shapes.flag),
    edgeRouterConnectionStatus: empty('unknown', {
      type: 'string',
      enum: ['online', 'offline', 'unknown'],
    }),
    interfaces: empty([], { type: 'array', items: { type: 'object' } }),
  },
  body: {
    type: {
      schema: { type: 'string', enum: ['User', 'Device', 'Service', 'Router', 'Default'] },
      in: ['create', 'replace', 'patch'],
      requiredIn: ['create', 'replace'],
    },
    enrollment: {
      schema: {
        type: 'object',
        properties: {
          ott: { type: ['boolean', 'null'] },
          ottca: { type: ['string', 'null'], maxLength: 128 },
          updb: { type: ['string', 'null'], maxLength: 100 },
        },
      },
      in: ['create'],
      requiredIn: [],
    },
  },
  indexes: ['roleAttributes', 'isAdmin'],
  symbols: [
    'name',
    'roleAttributes',
    'externalId',
    { name: 'type', field: 'typeId' },
    'authPolicyId',
    'isAdmin',
    'isDefaultAdmin',
  ],
  links: [
    'edge-router-policies',
    'edge-routers',
    'service-policies',
    'services',
    'posture-data',
    'failed-service-requests',
    'authenticators',
    'enrollments',
    'service-configs',
    { key: 'auth-policies', field: 'authPolicyId', collection: 'auth-policies' },
  ],
  lists: {
    authenticators: {
      of: 'authenticator',
      through: 'naming',
      by: 'identityId',
      operationId: 'getIdentityAuthenticators',
      unknownParent: 'notFound',
    },
    enrollments: {
      of: 'enrollment',
      through: 'naming',
      by: 'identityId',
      operationId: 'getIdentityEnrollments',
      unknownParent: 'notFound',
    },
    'edge-router-policies': {
      of: 'edgeRouterPolicy',
      through: 'policies',
      by: 'identityRoles',
      operationId: 'listIdentitysEdgeRouterPolicies',
      unknownParent: 'notFound',
    },
    'edge-routers': {
      of: 'edgeRouter',
      through: 'policyLinks',
      by: 'edgeRouterPolicy',
      unknownParent: 'notFound',
    },
    services: { of: 'service', through: 'access', unknownParent: 'notFound' },
    'service-policies': {
      of: 'servicePolicy',
      through: 'policies',
      by: 'identityRoles',
      unknownParent: 'notFound',
    },
  },
  refuse: { delete: { isDefaultAdmin: 'ENTITY_CAN_NOT_BE_DELETED' } },
  hasRoleFilter: true,
})

export type Identity = EntityOf<typeof identity>
