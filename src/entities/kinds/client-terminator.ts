import { defineEntity } from '../define.ts'
import { boolean, computedField, idReferenceField, text } from '../fields.ts'
import { referenceField } from '../refs.ts'
import { text as textShape } from '../shapes.ts'

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
    instanceId: text({ settable: 'never', shown: 'never' }),
    isFabricOnly: boolean({ settable: 'never', shown: 'never' }),
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
