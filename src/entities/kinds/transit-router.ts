import { managementCrudPermissions } from '../crud.ts'
import { defineEntity } from '../define-entity.ts'
import { connectedSymbol, routerSymbols, anyRouterFields } from '../parts/router-fields.ts'

/**
 * A view of the kind `router`: the management API serves it at `/transit-routers`, and enrollments
 * and terminators reference routers as this kind.
 */
export const transitRouter = defineEntity({
  name: 'transitRouter',
  plural: 'transitRouters',
  table: 'router',
  operations: { management: managementCrudPermissions('router') },
  fields: anyRouterFields,
  symbols: [...routerSymbols, connectedSymbol, 'isTransit'],
})
