import { managementCrudPermissions } from '../crud.ts'
import { defineEntity } from '../define-entity.ts'
import { connectedSymbol, routerSymbols, anyRouterFields } from '../parts/router-fields.ts'

/** A view of the kind `router`: the name that the management API and references to routers use. */
export const transitRouter = defineEntity({
  name: 'transitRouter',
  plural: 'transitRouters',
  table: 'router',
  operations: { management: managementCrudPermissions('router') },
  fields: anyRouterFields,
  symbols: [...routerSymbols, connectedSymbol, 'isTransit'],
})
