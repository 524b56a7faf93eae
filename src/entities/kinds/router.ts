import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { attributes, boolean, map } from '../fields.ts'
import { connectedSymbol, routerSymbols, transitFields } from '../parts/router-fields.ts'

const hidden = { shown: 'never' } as const

/** Any router of the fabric, edge or transit; the table that stores all routers. */
export const router = defineEntity({
  name: 'router',
  plural: 'routers',
  operations: { management: crud('router') },
  fields: {
    ...transitFields,
    isEdge: boolean({ settable: 'never', ...hidden }),
    isTunnelerEnabled: boolean({ settable: 'never', ...hidden }),
    roleAttributes: attributes({ settable: 'never', ...hidden }),
    appData: map({ settable: 'never', ...hidden }),
  },
  indexes: ['certificateNames', 'isEdge', 'roleAttributes'],
  symbols: [...routerSymbols, connectedSymbol],
})

export type Router = EntityOf<typeof router>
