import { createOnlyMember, bodyMemberOfAllWrites } from '../body-members.ts'
import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import {
  boolean,
  choice,
  computed,
  integer,
  map,
  nameText,
  object,
  optionalText,
  reference,
  texts,
  timestamp,
} from '../fields.ts'
import { shownInEvents } from '../published.ts'
import { identityStates, ownCredentials, wantedEnrollments } from '../parts/identity-credentials.ts'
import { roleEndsSchema, roleFields, roleSymbols } from '../parts/role-attribute-ends.ts'
import { grantablePermissions } from '../../lib/permissions.ts'
import { nullableReferenceField, referenceField } from '../refs.ts'
import { applicationData, envInfoSchema, flag, sdkInfoSchema } from '../shapes.ts'
import { subListOfExisting } from '../sub-lists.ts'
import { interfaces } from '../parts/router-fields.ts'
import { costMax, precedences, precedenceSchema } from '../parts/terminator-fields.ts'

const cost = { type: 'integer', minimum: 0, maximum: costMax } as const
const connection = { type: 'string', enum: ['online', 'offline', 'unknown'] } as const
const kind = { type: 'string', enum: ['User', 'Device', 'Service', 'Router', 'Default'] } as const
/** Derived from `type` in bodies. Below feature level 2 only `Default` and `Router` exist. */
const typeRules = { settable: 'proposer', otherwise: 'Default', writableSince: 2 } as const
/** A user, device or program that can open sessions. */
export const identity = defineEntity({
  name: 'identity',
  plural: 'identities',
  isPublished: true,
  operations: { management: crud('identity') },
  fields: shownInEvents({
    name: nameText({ unique: `duplicate value '{value}' in unique index on identities store` }),
    typeId: reference('identityType', 'refuse', typeRules),
    isAdmin: boolean({ required: true }),
    isDefaultAdmin: boolean({ settable: 'never' }),
    authPolicyId: reference('authPolicy', 'refuse', { otherwise: 'default' }),
    externalId: optionalText({ unique: 'externalId must be unique' }),
    ...roleFields,
    appData: object(applicationData, {}),
    defaultHostingCost: integer({ maximum: costMax }),
    defaultHostingPrecedence: choice(precedences, { otherwise: 'default' }),
    serviceHostingCosts: map<number>({ values: cost, keysOf: 'service' }),
    serviceHostingPrecedences: map<string>({ values: precedenceSchema, keysOf: 'service' }),
    permissions: texts({ values: grantablePermissions, nullIfEmpty: true }),
    disabledAt: timestamp({ settable: 'never', shown: 'whenSet' }),
    disabledUntil: timestamp({ settable: 'never', shown: 'whenSet' }),
    envInfo: object(envInfoSchema, {}, { settable: 'never' }),
    sdkInfo: object(sdkInfoSchema, {}, { settable: 'never' }),
    type: referenceField('identityType', 'typeId'),
    authPolicy: nullableReferenceField('authPolicy', 'authPolicyId'),
    ...ownCredentials,
    disabled: computed({ from: 'isWithin', since: 'disabledAt', until: 'disabledUntil' }, flag),
    hasApiSession: computed({ from: 'isReferenced', of: 'apiSession', by: 'identityId' }, flag),
    isMfaEnabled: computed(
      { from: 'fieldOfNaming', of: 'mfa', by: 'identityId', field: 'isVerified', otherwise: false },
      flag,
    ),
    hasEdgeRouterConnection: computed({ from: 'routerConnection', shows: 'flag' }, flag),
    edgeRouterConnectionStatus: computed({ from: 'routerConnection', shows: 'word' }, connection),
    /** Of the router whose tunnel the identity is. */
    interfaces,
  }),
  body: {
    type: bodyMemberOfAllWrites(kind, 'create', 'replace'),
    enrollment: createOnlyMember(wantedEnrollments, 'optional'),
    roleAttributesExpireAt: bodyMemberOfAllWrites(roleEndsSchema),
  },
  indexes: ['roleAttributes', 'isAdmin'],
  symbols: [
    'name',
    ...roleSymbols,
    'externalId',
    { name: 'type', field: 'typeId' },
    'authPolicyId',
    'isAdmin',
    ...identityStates,
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
    authenticators: subListOfExisting(
      'authenticator',
      'naming',
      'identityId',
      'getIdentityAuthenticators',
    ),
    enrollments: subListOfExisting('enrollment', 'naming', 'identityId', 'getIdentityEnrollments'),
    'edge-router-policies': subListOfExisting(
      'edgeRouterPolicy',
      'policies',
      'identityRoles',
      'listIdentitysEdgeRouterPolicies',
    ),
    'edge-routers': subListOfExisting('edgeRouter', 'policyLinks', 'edgeRouterPolicy'),
    services: subListOfExisting('service', 'access'),
    'service-policies': subListOfExisting('servicePolicy', 'policies', 'identityRoles'),
  },
  refuse: { delete: { isDefaultAdmin: 'ENTITY_CAN_NOT_BE_DELETED' } },
  hasRoleFilter: true,
})

export type Identity = EntityOf<typeof identity>
