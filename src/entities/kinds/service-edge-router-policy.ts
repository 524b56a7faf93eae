import { managementCrudPermissions } from '../crud.ts'
import { defineEntity } from '../define-entity.ts'
import { choiceField, computedField, nameField, roleListField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import { namedRolesSchema } from '../response-schemas.ts'

/**
 * Lets services use edge routers; `semantic` applies to each of the two role lists separately.
 */
export const serviceEdgeRouterPolicy = defineEntity({
  name: 'serviceEdgeRouterPolicy',
  plural: 'serviceEdgeRouterPolicies',
  isPublished: true,
  operations: { management: managementCrudPermissions('service-edge-router-policy') },
  fields: markShownInEvents({
    name: nameField(),
    semantic: choiceField(['AllOf', 'AnyOf'], { required: true }),
    serviceRoles: roleListField('service'),
    edgeRouterRoles: roleListField('edgeRouter'),
    serviceRolesDisplay: computedField(
      { from: 'rolesDisplay', to: 'service', by: 'serviceRoles' },
      namedRolesSchema,
    ),
    edgeRouterRolesDisplay: computedField(
      { from: 'rolesDisplay', to: 'edgeRouter', by: 'edgeRouterRoles' },
      namedRolesSchema,
    ),
  }),
  symbols: ['name', 'semantic', 'serviceRoles', 'edgeRouterRoles'],
  links: ['edge-routers', 'services'],
  lists: {
    'edge-routers': { of: 'edgeRouter', through: 'roles', by: 'edgeRouterRoles' },
    services: { of: 'service', through: 'roles', by: 'serviceRoles' },
  },
})
