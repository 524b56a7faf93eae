import { atCreate } from '../body-members.ts'
import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { boolean, computed, map, text } from '../fields.ts'
import { published, withheld } from '../published.ts'
import { text as textShape } from '../shapes.ts'
import {
  instanceName,
  instanceSecret,
  terminatorBody,
  terminatorBounds,
  terminatorFields,
  terminatorSymbols,
} from '../parts/terminator-fields.ts'

/** Place where a service is hosted: an address that a router dials, or a host behind it. */
export const terminator = defineEntity({
  name: 'terminator',
  plural: 'terminators',
  scope: { field: 'isFabricOnly', value: false },
  isPublished: true,
  operations: { management: crud('terminator') },
  fields: published({
    ...terminatorFields,
    /** `identity` in bodies: of several hosts of one service, which one. */
    instanceId: text({ settable: 'proposer', shown: 'never', charactersMax: 512 }),
    /** Base64; never shown. */
    ...withheld({
      instanceSecret: text({
        settable: 'proposer',
        shown: 'never',
        charactersMax: terminatorBounds.secretCharactersMax,
      }),
    }),
    hostId: text({ settable: 'proposer', shown: 'never', charactersMax: 128 }),
    sourceCtrl: text({ settable: 'never', shown: 'never' }),
    /** Header number → base64: what the host tells whoever dials it, as the key of its end. */
    ...withheld({ peerData: map<string>({ settable: 'never', shown: 'never' }) }),
    /** Made by its router for a host, and the host's alone to change. */
    isSystem: boolean({ settable: 'never', shown: 'never' }),
    /** Whether its service exists for the fabric alone. */
    isFabricOnly: boolean({ settable: 'never', shown: 'never' }),
    identity: computed({ from: 'field', field: 'instanceId' }, textShape),
  }),
  body: {
    ...terminatorBody,
    identity: atCreate(instanceName, 'optional'),
    identitySecret: atCreate(instanceSecret, 'optional'),
  },
  indexes: ['isFabricOnly', 'hostId', 'instanceId'],
  symbols: terminatorSymbols('service', 'transitRouter'),
  refuse: { update: { isSystem: 'ENTITY_CAN_NOT_BE_UPDATED' } },
})

export type Terminator = EntityOf<typeof terminator>
