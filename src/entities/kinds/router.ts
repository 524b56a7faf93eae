import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import { roleAttributesField, booleanField, mapField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import { connectedSymbol, routerSymbols, anyRouterFields } from '../parts/router-fields.ts'

const hidden = { shown: 'never' } as const
const { allowedNames, certificateNames, ...first } = anyRouterFields

/** Any router of the fabric, edge or transit. The table of this kind stores all routers. */
export const router = defineEntity({
  name: 'router',
  plural: 'routers',
  isPublished: true,
  operations: { management: managementCrudPermissions('router') },
  fields: markShownInEvents({
    ...first,
    isEdge: booleanField({ settable: 'never', ...hidden }),
    isTunnelerEnabled: booleanField({ settable: 'never', ...hidden }),
    roleAttributes: roleAttributesField({ settable: 'never', ...hidden }),
    appData: mapField({ settable: 'never', ...hidden }),
    allowedNames,
    certificateNames,
  }),
  indexes: ['certificateNames', 'isEdge', 'roleAttributes'],
  symbols: [...routerSymbols, connectedSymbol],
})

export type Router = EntityOf<typeof router>
