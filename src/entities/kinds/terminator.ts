import { createOnlyMember } from '../body-members.ts'
import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { boolean, computed, map, text } from '../fields.ts'
import { shownInEvents, hiddenFromEvents } from '../published.ts'
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
  fields: shownInEvents({
    ...terminatorFields,
    /** Called `identity` in request bodies: distinguishes several hosts of a service. */
    instanceId: text({ settable: 'proposer', shown: 'never', charactersMax: 512 }),
    /** Base64; never shown. */
    ...hiddenFromEvents({
      instanceSecret: text({
        settable: 'proposer',
        shown: 'never',
        charactersMax: terminatorBounds.secretCharactersMax,
      }),
    }),
    hostId: text({ settable: 'proposer', shown: 'never', charactersMax: 128 }),
    sourceCtrl: text({ settable: 'never', shown: 'never' }),
    /** Data that the host sends to dialers, such as its public key: header number → base64. */
    ...hiddenFromEvents({ peerData: map<string>({ settable: 'never', shown: 'never' }) }),
    /** True if a router created the terminator for a host; then only that host may change it. */
    isSystem: boolean({ settable: 'never', shown: 'never' }),
    /** Whether the terminator's service is fabric-only. */
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
