import { bodyMemberForAllWrites } from '../body-members.ts'
import { choiceField, computedField, integerField, idReferenceField, textField } from '../fields.ts'
import { referenceField } from '../reference-fields.ts'

export const terminatorCostMax = 65_535
export const precedenceNames = ['default', 'required', 'failed'] as const
export const precedenceSchema = { type: 'string', enum: precedenceNames } as const
const idSchema = { type: 'string', maxLength: 128 } as const
export const terminatorBounds = { addressCharactersMax: 1024, secretCharactersMax: 4096 } as const

/** Fields of a terminator that the management API and the fabric API have in common. */
export const terminatorFields = {
  /**
   * The code that prepares the command derives these fields from `service` and `router` in the
   * body. The service of a terminator never changes.
   */
  serviceId: idReferenceField('service', 'cascade', { settable: 'proposer' }),
  routerId: idReferenceField('transitRouter', 'cascade', { settable: 'proposer' }),
  binding: textField({ charactersMax: 128 }),
  address: textField({ required: true, charactersMax: terminatorBounds.addressCharactersMax }),
  cost: integerField({ maximum: terminatorCostMax }),
  precedence: choiceField(precedenceNames, { otherwise: 'default' }),
  dynamicCost: computedField({ from: 'dialCost' }, { type: 'integer' }),
  service: referenceField('service', 'serviceId'),
  router: referenceField('transitRouter', 'routerId'),
} as const

export const terminatorBodyMembers = {
  service: bodyMemberForAllWrites(idSchema, 'create', 'replace'),
  router: bodyMemberForAllWrites(idSchema, 'create', 'replace'),
  // If the binding is empty, the address determines it.
  binding: bodyMemberForAllWrites({ type: 'string', maxLength: 128 }, 'create', 'replace'),
} as const

export const instanceNameSchema = { type: 'string', maxLength: 512 } as const
export const instanceSecretSchema = {
  type: 'string',
  format: 'byte',
  pattern: '^[A-Za-z0-9+/]*={0,2}$',
  maxLength: terminatorBounds.secretCharactersMax,
} as const

/**
 * @param service kind in which `serviceId` is looked up.
 * @param router kind in which the router id is looked up.
 */
export function terminatorFilterSymbols<S extends string, R extends string>(service: S, router: R) {
  return [
    'binding',
    'address',
    'instanceId',
    // `identity` is the name of `instanceId` in bodies and responses.
    { name: 'identity', field: 'instanceId' },
    'hostId',
    'sourceCtrl',
    { name: 'service', field: 'serviceId' },
    { name: 'router', field: 'routerId' },
    { name: 'service.name', through: { field: 'serviceId', of: service, symbol: 'name' } },
    { name: 'router.name', through: { field: 'routerId', of: router, symbol: 'name' } },
  ] as const
}
