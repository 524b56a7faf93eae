import { managementCrudPermissions } from '../crud.ts'
import { defineEntity } from '../define-entity.ts'
import { nameField, objectField, idReferenceField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import { referenceField } from '../reference-fields.ts'

/** Data of one config type, for the services or routers that reference it. */
export const config = defineEntity({
  name: 'config',
  plural: 'configs',
  isPublished: true,
  operations: {
    management: managementCrudPermissions('config'),
  },
  fields: markShownInEvents({
    name: nameField(),
    configTypeId: idReferenceField('configType', 'refuse', { required: true, settable: 'create' }),
    /** The data was valid by the schema of the config type when the config was last written. */
    data: objectField({ type: 'object', additionalProperties: true }, {}, { required: true }),
    configType: referenceField('configType', 'configTypeId'),
  }),
  symbols: ['name', { name: 'type', field: 'configTypeId' }],
  lists: { services: { of: 'service', through: 'naming', by: 'configs' } },
})
