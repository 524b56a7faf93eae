import { bodyMemberForCreate } from '../body-members.ts'
import { crudPermissions } from '../crud.ts'
import { defineEntity } from '../define-entity.ts'
import { booleanField, idReferenceField, textField } from '../fields.ts'
import { referenceField } from '../reference-fields.ts'
import {
  instanceNameSchema,
  instanceSecretSchema,
  terminatorBodyMembers,
  terminatorBounds,
  terminatorFields,
  terminatorFilterSymbols,
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
    serviceId: idReferenceField('fabricService', 'cascade', { settable: 'proposer' }),
    routerId: idReferenceField('fabricRouter', 'cascade', { settable: 'proposer' }),
    service: referenceField('fabricService', 'serviceId'),
    router: referenceField('fabricRouter', 'routerId'),
    instanceId: textField({ settable: 'proposer', charactersMax: 512 }),
    instanceSecret: textField({
      settable: 'proposer',
      shown: 'never',
      charactersMax: terminatorBounds.secretCharactersMax,
    }),
    hostId: textField({ settable: 'proposer', charactersMax: 128 }),
    sourceCtrl: textField({ settable: 'never', shown: 'never' }),
    isSystem: booleanField({ settable: 'never', shown: 'never' }),
    isFabricOnly: booleanField({ settable: 'never', shown: 'never' }),
  },
  body: {
    ...terminatorBodyMembers,
    instanceId: bodyMemberForCreate(instanceNameSchema, 'optional'),
    instanceSecret: bodyMemberForCreate(instanceSecretSchema, 'optional'),
    hostId: bodyMemberForCreate({ type: 'string', maxLength: 128 }, 'optional'),
  },
  symbols: terminatorFilterSymbols('fabricService', 'fabricRouter'),
  refuse: { update: { isSystem: 'ENTITY_CAN_NOT_BE_UPDATED' } },
})
