import { crudPermissions } from '../crud.ts'
import { defineEntity } from '../define-entity.ts'
import { booleanField, choiceField, integerField, nameField } from '../fields.ts'
import { terminatorStrategies } from './service.ts'

/**
 * Any service, as the fabric API shows it. A service that is created through the fabric API is
 * fabric-only.
 */
export const fabricService = defineEntity({
  name: 'fabricService',
  plural: 'fabricServices',
  collection: 'services',
  table: 'service',
  operations: { fabric: crudPermissions('admin') },
  operationIds: {
    list: 'listServices',
    create: 'createService',
    detail: 'detailService',
    replace: 'updateService',
    patch: 'patchService',
    delete: 'deleteService',
  },
  fields: {
    name: nameField(),
    terminatorStrategy: choiceField(terminatorStrategies, { otherwise: 'smartrouting' }),
    maxIdleTimeMillis: integerField(),
    isFabricOnly: booleanField({ settable: 'proposer', shown: 'never' }),
  },
  symbols: ['name', 'terminatorStrategy'],
  links: ['terminators'],
  lists: {
    terminators: {
      of: 'fabricTerminator',
      through: 'naming',
      by: 'serviceId',
      operationId: 'listServiceTerminators',
    },
  },
})
