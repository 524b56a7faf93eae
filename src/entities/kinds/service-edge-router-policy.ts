import { crud } from '../crud.ts'
import { defineEntity } from '../define.ts'
import { choice, computed, nameText, roleList } from '../fields.ts'
import { shownInEvents } from '../published.ts'
import { namedRoles } from '../shapes.ts'

/**
 * Lets services use edge routers; `semantic` applies to each of the two role lists separately.
 */
export const serviceEdgeRouterPolicy = defineEntity({
  name: 'serviceEdgeRouterPolicy',
  plural: 'serviceEdgeRouterPolicies',
  isPublished: true,
  operations: { management: crud('service-edge-router-policy') },
  fields: shownInEvents({
    name: nameText(),
    semantic: choice(['AllOf', 'AnyOf'], { required: true }),
    serviceRoles: roleList('service'),
    edgeRouterRoles: roleList('edgeRouter'),
    serviceRolesDisplay: computed(
      { from: 'rolesDisplay', to: 'service', by: 'serviceRoles' },
      namedRoles,
    ),
    edgeRouterRolesDisplay: computed(
      { from: 'rolesDisplay', to: 'edgeRouter', by: 'edgeRouterRoles' },
      namedRoles,
    ),
  }),
  symbols: ['name', 'semantic', 'serviceRoles', 'edgeRouterRoles'],
  links: ['edge-routers', 'services'],
  lists: {
    'edge-routers': { of: 'edgeRouter', through: 'roles', by: 'edgeRouterRoles' },
    services: { of: 'service', through: 'roles', by: 'serviceRoles' },
  },
})
