import { atCreate } from '../body-members.ts'
import { crudOf } from '../crud.ts'
import { defineEntity } from '../define.ts'
import { boolean, reference, text } from '../fields.ts'
import { refOf } from '../refs.ts'
import {
  instanceName,
  instanceSecret,
  terminatorBody,
  terminatorBounds,
  terminatorFields,
  terminatorSymbols,
} from '../parts/terminator-fields.ts'

/** Any terminator, as the fabric API shows it, including those of fabric-only services. */
export const fabricTerminator = defineEntity({
  name: 'fabricTerminator',
  plural: 'fabricTerminators',
  collection: 'terminators',
  table: 'terminator',
  operations: { fabric: crudOf('admin') },
  operationIds: {
    list: 'listTerminators',
    create: 'createTerminator',
    detail: 'detailTerminator',
    replace: 'updateTerminator',
    patch: 'patchTerminator',
    delete: 'deleteTerminator',
  },
  fields: {
    ...terminatorFields,
    serviceId: reference('fabricService', 'cascade', { settable: 'proposer' }),
    routerId: reference('fabricRouter', 'cascade', { settable: 'proposer' }),
    service: refOf('fabricService', 'serviceId'),
    router: refOf('fabricRouter', 'routerId'),
    instanceId: text({ settable: 'proposer', charactersMax: 512 }),
    instanceSecret: text({
      settable: 'proposer',
      shown: 'never',
      charactersMax: terminatorBounds.secretCharactersMax,
    }),
    hostId: text({ settable: 'proposer', charactersMax: 128 }),
    sourceCtrl: text({ settable: 'never', shown: 'never' }),
    isSystem: boolean({ settable: 'never', shown: 'never' }),
    isFabricOnly: boolean({ settable: 'never', shown: 'never' }),
  },
  body: {
    ...terminatorBody,
    instanceId: atCreate(instanceName, 'optional'),
    instanceSecret: atCreate(instanceSecret, 'optional'),
    hostId: atCreate({ type: 'string', maxLength: 128 }, 'optional'),
  },
  symbols: terminatorSymbols('fabricService', 'fabricRouter'),
  refuse: { update: { isSystem: 'ENTITY_CAN_NOT_BE_UPDATED' } },
})
