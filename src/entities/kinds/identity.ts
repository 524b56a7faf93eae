import { bodyMemberForCreate, bodyMemberForAllWrites } from '../body-members.ts'
import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import {
  booleanField,
  choiceField,
  computedField,
  integerField,
  mapField,
  nameField,
  objectField,
  optionalTextField,
  idReferenceField,
  textListField,
  timestampField,
} from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import {
  identityStateSymbols,
  identityCredentialFields,
  requestedEnrollmentsSchema,
} from '../parts/identity-credentials.ts'
import {
  roleAttributeExpirySchema,
  roleAttributeFieldDescriptors,
  roleAttributeSymbols,
} from '../parts/role-attribute-expiry.ts'
import { grantablePermissions } from '../../lib/permissions.ts'
import { nullableReferenceField, referenceField } from '../reference-fields.ts'
import {
  applicationDataSchema,
  envInfoSchema,
  booleanSchema,
  sdkInfoSchema,
} from '../response-schemas.ts'
import { subListOfExisting } from '../sub-lists.ts'
import { interfacesField } from '../parts/router-fields.ts'
import { terminatorCostMax, precedenceNames, precedenceSchema } from '../parts/terminator-fields.ts'

const cost = { type: 'integer', minimum: 0, maximum: terminatorCostMax } as const
const connection = { type: 'string', enum: ['online', 'offline', 'unknown'] } as const
const kind = { type: 'string', enum: ['User', 'Device', 'Service', 'Router', 'Default'] } as const
/** Derived from `type` in bodies. Below feature level 2 only `Default` and `Router` exist. */
const typeRules = { settable: 'proposer', otherwise: 'Default', writableSince: 2 } as const
/** A user, device or program that can open sessions. */
export const identity = defineEntity({
  name: 'identity',
  plural: 'identities',
  isPublished: true,
  operations: { management: managementCrudPermissions('identity') },
  fields: markShownInEvents({
    name: nameField({ unique: `duplicate value '{value}' in unique index on identities store` }),
    typeId: idReferenceField('identityType', 'refuse', typeRules),
    isAdmin: booleanField({ required: true }),
    isDefaultAdmin: booleanField({ settable: 'never' }),
    authPolicyId: idReferenceField('authPolicy', 'refuse', { otherwise: 'default' }),
    externalId: optionalTextField({ unique: 'externalId must be unique' }),
    ...roleAttributeFieldDescriptors,
    appData: objectField(applicationDataSchema, {}),
    defaultHostingCost: integerField({ maximum: terminatorCostMax }),
    defaultHostingPrecedence: choiceField(precedenceNames, { otherwise: 'default' }),
    serviceHostingCosts: mapField<number>({ values: cost, keysOf: 'service' }),
    serviceHostingPrecedences: mapField<string>({ values: precedenceSchema, keysOf: 'service' }),
    permissions: textListField({ values: grantablePermissions, nullIfEmpty: true }),
    disabledAt: timestampField({ settable: 'never', shown: 'whenSet' }),
    disabledUntil: timestampField({ settable: 'never', shown: 'whenSet' }),
    envInfo: objectField(envInfoSchema, {}, { settable: 'never' }),
    sdkInfo: objectField(sdkInfoSchema, {}, { settable: 'never' }),
    type: referenceField('identityType', 'typeId'),
    authPolicy: nullableReferenceField('authPolicy', 'authPolicyId'),
    ...identityCredentialFields,
    disabled: computedField(
      { from: 'isWithin', since: 'disabledAt', until: 'disabledUntil' },
      booleanSchema,
    ),
    hasApiSession: computedField(
      { from: 'isReferenced', of: 'apiSession', by: 'identityId' },
      booleanSchema,
    ),
    isMfaEnabled: computedField(
      { from: 'fieldOfNaming', of: 'mfa', by: 'identityId', field: 'isVerified', otherwise: false },
      booleanSchema,
    ),
    hasEdgeRouterConnection: computedField(
      { from: 'routerConnection', shows: 'flag' },
      booleanSchema,
    ),
    edgeRouterConnectionStatus: computedField(
      { from: 'routerConnection', shows: 'word' },
      connection,
    ),
    /**
     * Network interfaces that the identity's router reports, if a router's tunnel uses this
     * identity.
     */
    interfaces: interfacesField,
  }),
  body: {
    type: bodyMemberForAllWrites(kind, 'create', 'replace'),
    enrollment: bodyMemberForCreate(requestedEnrollmentsSchema, 'optional'),
    roleAttributesExpireAt: bodyMemberForAllWrites(roleAttributeExpirySchema),
  },
  indexes: ['roleAttributes', 'isAdmin'],
  symbols: [
    'name',
    ...roleAttributeSymbols,
    'externalId',
    { name: 'type', field: 'typeId' },
    'authPolicyId',
    'isAdmin',
    ...identityStateSymbols,
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
