import { crud } from './crud.ts'
import { defineEntity } from './define.ts'
import type { EntityOf } from './define.ts'
import { boolean, choice, computed, empty, integer, reference, text } from './fields.ts'
import { entityRef, text as textShape } from './shapes.ts'

const costMax = 65_535
const bodies = ['create', 'replace', 'patch'] as const
const idSchema = { type: 'string', maxLength: 128 } as const
export const terminatorBounds = { addressCharactersMax: 1024, secretCharactersMax: 4096 } as const

/** What the fabric can say of a terminator, on every API. */
export const terminatorFields = {
  /** Made by the preparer of `service` and `router` in the body; the service stays. */
  serviceId: reference('service', 'cascade', { settable: 'proposer' }),
  routerId: reference('transitRouter', 'cascade', { settable: 'proposer' }),
  binding: text({ charactersMax: 128 }),
  address: text({ required: true, charactersMax: terminatorBounds.addressCharactersMax }),
  cost: integer({ maximum: costMax }),
  precedence: choice(['default', 'required', 'failed'], { otherwise: 'default' }),
  dynamicCost: empty(0, { type: 'integer' }),
  service: computed({ from: 'entityRef', to: 'service', by: 'serviceId' }, entityRef),
  router: computed({ from: 'entityRef', to: 'transitRouter', by: 'routerId' }, entityRef),
} as const

export const terminatorBody = {
  service: { schema: idSchema, in: bodies, requiredIn: ['create', 'replace'] },
  router: { schema: idSchema, in: bodies, requiredIn: ['create', 'replace'] },
  // An empty one stands for the one that its address calls for.
  binding: {
    schema: { type: 'string', maxLength: 128 },
    in: bodies,
    requiredIn: ['create', 'replace'],
  },
} as const

export const instanceName = { type: 'string', maxLength: 512 } as const
export const instanceSecret = {
  type: 'string',
  format: 'byte',
  pattern: '^[A-Za-z0-9+/]*={0,2}$',
  maxLength: terminatorBounds.secretCharactersMax,
} as const

export const terminatorSymbols = [
  'binding',
  'address',
  'instanceId',
  'hostId',
  'sourceCtrl',
  { name: 'service', field: 'serviceId' },
  { name: 'router', field: 'routerId' },
] as const

/** Where a service is hosted: an address that a router dials, or a host behind it. */
export const terminator = defineEntity({
  name: 'terminator',
  plural: 'terminators',
  scope: { field: 'isFabricOnly', value: false },
  operations: { management: crud('terminator') },
  fields: {
    ...terminatorFields,
    /** `identity` in bodies: of several hosts of one service, which one. */
    instanceId: text({ settable: 'proposer', shown: 'never', charactersMax: 512 }),
    /** Base64; never shown. */
    instanceSecret: text({
      settable: 'proposer',
      shown: 'never',
      charactersMax: terminatorBounds.secretCharactersMax,
    }),
    hostId: text({ settable: 'proposer', shown: 'never', charactersMax: 128 }),
    sourceCtrl: text({ settable: 'never', shown: 'never' }),
    /** Made by its router for a host, and the host's alone to change. */
    isSystem: boolean({ settable: 'never', shown: 'never' }),
    /** Of a service that exists for the fabric alone. */
    isFabricOnly: boolean({ settable: 'never', shown: 'never' }),
    identity: computed({ from: 'field', field: 'instanceId' }, textShape),
  },
  body: {
    ...terminatorBody,
    identity: { schema: instanceName, in: ['create'], requiredIn: [] },
    identitySecret: { schema: instanceSecret, in: ['create'], requiredIn: [] },
  },
  indexes: ['isFabricOnly'],
  symbols: terminatorSymbols,
  refuse: { update: { isSystem: 'ENTITY_CAN_NOT_BE_UPDATED' } },
})

export type Terminator = EntityOf<typeof terminator>
