import { createOnlyMember } from '../body-members.ts'
import { crudPermissions } from '../crud.ts'
import { defineEntity } from '../define.ts'
import { boolean, reference, text } from '../fields.ts'
import { referenceField } from '../refs.ts'
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
  operations: { fabric: crudPermissions('admin') },
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
    service: referenceField('fabricService', 'serviceId'),
    router: referenceField('fabricRouter', 'routerId'),
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
    instanceId: createOnlyMember(instanceName, 'optional'),
    instanceSecret: createOnlyMember(instanceSecret, 'optional'),
    hostId: createOnlyMember({ type: 'string', maxLength: 128 }, 'optional'),
  },
  symbols: terminatorSymbols('fabricService', 'fabricRouter'),
  refuse: { update: { isSystem: 'ENTITY_CAN_NOT_BE_UPDATED' } },
})
