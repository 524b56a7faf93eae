import { managementCrudPermissions } from '../crud.ts'
import { defineEntity } from '../define-entity.ts'
import { connectedSymbol, routerSymbols, anyRouterFields } from '../parts/router-fields.ts'

/** The name of the kind `router` on the management API and in references to routers. */
export const transitRouter = defineEntity({
  name: 'transitRouter',
  plural: 'transitRouters',
  table: 'router',
  operations: { management: managementCrudPermissions('router') },
  fields: anyRouterFields,
  symbols: [...routerSymbols, connectedSymbol],
})
