import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import { booleanField, choiceField, computedField, nameField, roleListField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import { namedRolesSchema } from '../response-schemas.ts'
import { subListOfExisting } from '../sub-lists.ts'

/**
 * Lets identities use edge routers; `semantic` applies to each of the two role lists separately.
 */
export const edgeRouterPolicy = defineEntity({
  name: 'edgeRouterPolicy',
  plural: 'edgeRouterPolicies',
  isPublished: true,
  operations: { management: managementCrudPermissions('edge-router-policy') },
  fields: markShownInEvents({
    name: nameField(),
    semantic: choiceField(['AllOf', 'AnyOf'], { required: true }),
    identityRoles: roleListField('identity'),
    edgeRouterRoles: roleListField('edgeRouter'),
    /**
     * True for the policy that lets the identity of a router with a tunnel use this router. The
     * policy is created when the tunnel is enabled, and deleted when the tunnel is disabled or the
     * router is deleted.
     */
    isSystem: booleanField({ settable: 'never' }),
    identityRolesDisplay: computedField(
      { from: 'rolesDisplay', to: 'identity', by: 'identityRoles' },
      namedRolesSchema,
    ),
    edgeRouterRolesDisplay: computedField(
      { from: 'rolesDisplay', to: 'edgeRouter', by: 'edgeRouterRoles' },
      namedRolesSchema,
    ),
  }),
  symbols: ['name', 'semantic', 'identityRoles', 'edgeRouterRoles'],
  links: ['edge-routers', 'identities'],
  lists: {
    'edge-routers': subListOfExisting('edgeRouter', 'roles', 'edgeRouterRoles'),
    identities: subListOfExisting('identity', 'roles', 'identityRoles'),
  },
  refuse: {
    update: { isSystem: 'ENTITY_CAN_NOT_BE_UPDATED' },
    delete: { isSystem: 'ENTITY_CAN_NOT_BE_DELETED' },
  },
})

export type EdgeRouterPolicy = EntityOf<typeof edgeRouterPolicy>
