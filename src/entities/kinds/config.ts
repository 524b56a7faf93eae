import { crud } from '../crud.ts'
import { defineEntity } from '../define.ts'
import { nameText, object, reference } from '../fields.ts'
import { shownInEvents } from '../published.ts'
import { referenceField } from '../refs.ts'

/** Data of one config type, for the services or routers that reference it. */
export const config = defineEntity({
  name: 'config',
  plural: 'configs',
  isPublished: true,
  operations: {
    management: crud('config'),
  },
  fields: shownInEvents({
    name: nameText(),
    configTypeId: reference('configType', 'refuse', { required: true, settable: 'create' }),
    /** Valid according to the schema that the config type had at the time of the write. */
    data: object({ type: 'object', additionalProperties: true }, {}, { required: true }),
    configType: referenceField('configType', 'configTypeId'),
  }),
  symbols: ['name', { name: 'type', field: 'configTypeId' }],
  lists: { services: { of: 'service', through: 'naming', by: 'configs' } },
})
