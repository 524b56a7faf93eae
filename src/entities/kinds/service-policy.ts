import { bodyMemberOfAllWrites } from '../body-members.ts'
import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { boolean, choice, computed, nameText, roleList, timestamp } from '../fields.ts'
import { expirySchema } from '../parts/expiry.ts'
import { shownInEvents } from '../published.ts'
import { namedRoles } from '../shapes.ts'

/**
 * Lets identities dial or bind services; `semantic` applies to each of the role lists separately.
 */
export const servicePolicy = defineEntity({
  name: 'servicePolicy',
  plural: 'servicePolicies',
  isPublished: true,
  operations: {
    management: crud('service-policy'),
  },
  fields: shownInEvents({
    name: nameText(),
    type: choice(['Dial', 'Bind'], { required: true }),
    semantic: choice(['AllOf', 'AnyOf'], { required: true }),
    identityRoles: roleList('identity'),
    serviceRoles: roleList('service'),
    /**
     * A posture check that a policy references by id cannot be deleted: without the check, the
     * policy would grant access to devices that the policy must exclude.
     */
    // @guard posture-checks-taken-away--named
    postureCheckRoles: roleList('postureCheck', { refusedFrom: 2 }),
    isSystem: boolean({ settable: 'never', shown: 'never' }),
    /**
     * Null: the policy never expires. A PUT without this member leaves the stored expiry unchanged,
     * because OpenZiti clients do not know the member and omit it.
     */
    expiresAt: timestamp({ settable: 'proposer', shown: 'whenSet', since: 3 }),
    /** Log time has reached `expiresAt`, so the policy grants nothing. */
    isEnded: boolean({ settable: 'never', shown: 'whenSet', since: 3 }),
    identityRolesDisplay: computed(
      { from: 'rolesDisplay', to: 'identity', by: 'identityRoles' },
      namedRoles,
    ),
    serviceRolesDisplay: computed(
      { from: 'rolesDisplay', to: 'service', by: 'serviceRoles' },
      namedRoles,
    ),
    postureCheckRolesDisplay: computed(
      { from: 'rolesDisplay', to: 'postureCheck', by: 'postureCheckRoles' },
      namedRoles,
    ),
  }),
  body: { expiresAt: bodyMemberOfAllWrites(expirySchema) },
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
