import { bodyMemberForAllWrites } from '../body-members.ts'
import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import {
  booleanField,
  choiceField,
  computedField,
  nameField,
  roleListField,
  timestampField,
} from '../fields.ts'
import { expirySchema } from '../parts/expiry.ts'
import { markShownInEvents } from '../event-visibility.ts'
import { namedRolesSchema } from '../response-schemas.ts'

/**
 * Lets identities dial or bind services; `semantic` applies to each of the role lists separately.
 */
export const servicePolicy = defineEntity({
  name: 'servicePolicy',
  plural: 'servicePolicies',
  isPublished: true,
  operations: {
    management: managementCrudPermissions('service-policy'),
  },
  fields: markShownInEvents({
    name: nameField(),
    type: choiceField(['Dial', 'Bind'], { required: true }),
    semantic: choiceField(['AllOf', 'AnyOf'], { required: true }),
    identityRoles: roleListField('identity'),
    serviceRoles: roleListField('service'),
    /**
     * From feature level 2, a posture check that a policy references by id cannot be deleted:
     * without the check, the policy would grant access to devices that the policy must exclude.
     */
    // @guard posture-checks-taken-away--named
    postureCheckRoles: roleListField('postureCheck', { refusedFrom: 2 }),
    isSystem: booleanField({ settable: 'never', shown: 'never' }),
    /**
     * Null: the policy never expires. A PUT without this member leaves the stored expiry unchanged,
     * because OpenZiti clients do not know the member and never send it.
     */
    expiresAt: timestampField({ settable: 'proposer', shown: 'whenSet', since: 3 }),
    /** True once log time has reached `expiresAt`; the policy then grants nothing. */
    isEnded: booleanField({ settable: 'never', shown: 'whenSet', since: 3 }),
    identityRolesDisplay: computedField(
      { from: 'rolesDisplay', to: 'identity', by: 'identityRoles' },
      namedRolesSchema,
    ),
    serviceRolesDisplay: computedField(
      { from: 'rolesDisplay', to: 'service', by: 'serviceRoles' },
      namedRolesSchema,
    ),
    postureCheckRolesDisplay: computedField(
      { from: 'rolesDisplay', to: 'postureCheck', by: 'postureCheckRoles' },
      namedRolesSchema,
    ),
  }),
  body: { expiresAt: bodyMemberForAllWrites(expirySchema) },
  indexes: ['type'],
  symbols: [
    'name',
    { name: 'type', field: 'type', numbered: ['Dial', 'Bind'] },
    'semantic',
    'identityRoles',
    'serviceRoles',
    'postureCheckRoles',
    'expiresAt',
    'isEnded',
    { name: 'identities', list: 'identities' },
    { name: 'services', list: 'services' },
  ],
  links: ['services', 'identities', 'posture-checks'],
  lists: {
    services: { of: 'service', through: 'roles', by: 'serviceRoles' },
    identities: { of: 'identity', through: 'roles', by: 'identityRoles' },
    'posture-checks': { of: 'postureCheck', through: 'roles', by: 'postureCheckRoles' },
  },
  refuse: {
    update: { isSystem: 'ENTITY_CAN_NOT_BE_UPDATED' },
    delete: { isSystem: 'ENTITY_CAN_NOT_BE_DELETED' },
  },
})

export type ServicePolicy = EntityOf<typeof servicePolicy>
