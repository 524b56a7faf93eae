import { crud } from './crud.ts'
import { defineEntity } from './define.ts'
import type { EntityOf } from './define.ts'
import {
  attributes,
  boolean,
  empty,
  integer,
  map,
  nameText,
  object,
  optionalText,
  references,
} from './fields.ts'
import { flag } from './shapes.ts'

const hidden = { shown: 'never' } as const
const costMax = 65_535

/** What every router has, whatever kind it is. */
export const routerFields = {
  name: nameText(),
  cost: integer({ maximum: costMax }),
  noTraversal: boolean(),
  disabled: boolean(),
  ctrlChanListeners: object(
    {
      type: 'object',
      maxProperties: 64,
      additionalProperties: {
        type: 'array',
        maxItems: 64,
        items: { type: 'string', maxLength: 512 },
      },
    },
    {},
  ),
  configs: references('config', 'strip'),
  isVerified: boolean({ settable: 'proposer' }),
  /** Of the certificate that it enrolled with; null before. */
  fingerprint: optionalText({
    settable: 'proposer',
    shown: 'whenSet',
    unique: 'fingerprint must be unique',
  }),
  certPem: optionalText({ settable: 'proposer', charactersMax: 65_536 }),
  isOnline: empty(false, flag),
} as const

/** A router of the fabric, edge or transit: the table of all of them. */
export const router = defineEntity({
  name: 'router',
  plural: 'routers',
  operations: { management: crud('router') },
  fields: {
    ...routerFields,
    isEdge: boolean({ settable: 'never', ...hidden }),
    isTunnelerEnabled: boolean({ settable: 'never', ...hidden }),
    roleAttributes: attributes({ settable: 'never', ...hidden }),
    appData: map({ settable: 'never', ...hidden }),
  },
  indexes: ['isEdge', 'roleAttributes'],
  symbols: ['name', 'fingerprint', 'cost', 'noTraversal', 'disabled', 'ctrlChanListeners'],
})

export type Router = EntityOf<typeof router>
