import { bodyMemberForCreate } from '../body-members.ts'
import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import { booleanField, computedField, mapField, textField } from '../fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'
import { textSchema as textShape } from '../response-schemas.ts'
import {
  instanceNameSchema,
  instanceSecretSchema,
  terminatorBodyMembers,
  terminatorBounds,
  terminatorFields,
  terminatorFilterSymbols,
} from '../parts/terminator-fields.ts'

/**
 * A terminator, through which circuits reach a service: an address that a router dials, or a host
 * that is connected to a router.
 */
export const terminator = defineEntity({
  name: 'terminator',
  plural: 'terminators',
  scope: { field: 'isFabricOnly', value: false },
  isPublished: true,
  operations: { management: managementCrudPermissions('terminator') },
  fields: markShownInEvents({
    ...terminatorFields,
    /**
     * Name of an instance of the service, which several hosts can share; '' without an instance.
     * Bodies of the management API call it `identity`.
     */
    instanceId: textField({ settable: 'proposer', shown: 'never', charactersMax: 512 }),
    /**
     * Secret that all hosts of a service instance must share, in base64; no response or event
     * contains the secret.
     */
    ...markHiddenFromEvents({
      instanceSecret: textField({
        settable: 'proposer',
        shown: 'never',
        charactersMax: terminatorBounds.secretCharactersMax,
      }),
    }),
    hostId: textField({ settable: 'proposer', shown: 'never', charactersMax: 128 }),
    sourceCtrl: textField({ settable: 'never', shown: 'never' }),
    /** Data that the host sends to dialers, such as its public key: header number → base64. */
    ...markHiddenFromEvents({ peerData: mapField<string>({ settable: 'never', shown: 'never' }) }),
    /**
     * True if a router created the terminator for a host; API requests can then delete it, but not
     * change it.
     */
    isSystem: booleanField({ settable: 'never', shown: 'never' }),
    /** Whether the terminator's service is fabric-only. */
    isFabricOnly: booleanField({ settable: 'never', shown: 'never' }),
    identity: computedField({ from: 'field', field: 'instanceId' }, textShape),
  }),
  body: {
    ...terminatorBodyMembers,
    identity: bodyMemberForCreate(instanceNameSchema, 'optional'),
    identitySecret: bodyMemberForCreate(instanceSecretSchema, 'optional'),
  },
  indexes: ['isFabricOnly', 'hostId', 'instanceId'],
  symbols: terminatorFilterSymbols('service', 'transitRouter'),
  refuse: { update: { isSystem: 'ENTITY_CAN_NOT_BE_UPDATED' } },
})

export type Terminator = EntityOf<typeof terminator>
