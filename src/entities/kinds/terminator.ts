import { createOnlyMember } from '../body-members.ts'
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

/**
 * An endpoint that hosts a service: an address that a router dials, or a host connected to a
 * router.
 */
export const terminator = defineEntity({
  name: 'terminator',
  plural: 'terminators',
  scope: { field: 'isFabricOnly', value: false },
  isPublished: true,
  operations: { management: crud('terminator') },
  fields: published({
    ...terminatorFields,
    /** `identity` in bodies: selects one of several hosts of a service. */
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
    /** Header number → base64: data that the host sends to dialers, such as its public key. */
    ...withheld({ peerData: map<string>({ settable: 'never', shown: 'never' }) }),
    /** True when a router created it for a host, which alone may change it. */
    isSystem: boolean({ settable: 'never', shown: 'never' }),
    /** Whether its service is fabric-only. */
    isFabricOnly: boolean({ settable: 'never', shown: 'never' }),
    identity: computed({ from: 'field', field: 'instanceId' }, textShape),
  }),
  body: {
    ...terminatorBody,
    identity: createOnlyMember(instanceName, 'optional'),
    identitySecret: createOnlyMember(instanceSecret, 'optional'),
  },
  indexes: ['isFabricOnly', 'hostId', 'instanceId'],
  symbols: terminatorSymbols('service', 'transitRouter'),
  refuse: { update: { isSystem: 'ENTITY_CAN_NOT_BE_UPDATED' } },
})

export type Terminator = EntityOf<typeof terminator>
