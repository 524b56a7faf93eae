import { defineEntity } from '../define-entity.ts'
import { booleanField, computedField, idReferenceField, textField } from '../fields.ts'
import { referenceField } from '../reference-fields.ts'
import { textSchema as textShape } from '../response-schemas.ts'

/** A terminator as a client sees it: without address and cost. */
export const clientTerminator = defineEntity({
  name: 'clientTerminator',
  plural: 'clientTerminators',
  collection: 'terminators',
  table: 'terminator',
  scope: { field: 'isFabricOnly', value: false },
  operations: {},
  fields: {
    serviceId: idReferenceField('service', 'cascade', { settable: 'never' }),
    routerId: idReferenceField('transitRouter', 'cascade', { settable: 'never' }),
    instanceId: textField({ settable: 'never', shown: 'never' }),
    isFabricOnly: booleanField({ settable: 'never', shown: 'never' }),
    service: referenceField('service', 'serviceId'),
    identity: computedField({ from: 'field', field: 'instanceId' }, textShape),
  },
  symbols: [
    'instanceId',
    { name: 'identity', field: 'instanceId' },
    { name: 'service', field: 'serviceId' },
    { name: 'router', field: 'routerId' },
  ],
})
