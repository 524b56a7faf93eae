import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { boolean, choice, computed, nameText, roleList } from '../fields.ts'
import { published } from '../published.ts'
import { namedRoles } from '../shapes.ts'
import { subListOfExisting } from '../sub-lists.ts'

/** Lets identities use edge routers; the semantic applies to each of its role lists separately. */
export const edgeRouterPolicy = defineEntity({
  name: 'edgeRouterPolicy',
  plural: 'edgeRouterPolicies',
  isPublished: true,
  operations: { management: crud('edge-router-policy') },
  fields: published({
    name: nameText(),
    semantic: choice(['AllOf', 'AnyOf'], { required: true }),
    identityRoles: roleList('identity'),
    edgeRouterRoles: roleList('edgeRouter'),
    /**
     * True for the policy created with a tunneling router for its identity, and deleted with it.
     */
    isSystem: boolean({ settable: 'never' }),
    identityRolesDisplay: computed(
      { from: 'rolesDisplay', to: 'identity', by: 'identityRoles' },
      namedRoles,
    ),
    edgeRouterRolesDisplay: computed(
      { from: 'rolesDisplay', to: 'edgeRouter', by: 'edgeRouterRoles' },
      namedRoles,
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
