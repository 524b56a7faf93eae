import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import { choiceField, nameField, objectField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'

/**
 * A config type: a JSON Schema (draft-07) that validates the data of its configs, and the kind of
 * records that may use these configs.
 */
export const configType = defineEntity({
  name: 'configType',
  plural: 'configTypes',
  isPublished: true,
  operations: {
    management: managementCrudPermissions('config-type'),
  },
  fields: markShownInEvents({
    name: nameField(),
    /**
     * The schema is validated before the config type is proposed. An empty schema accepts all data.
     */
    schema: objectField({ type: 'object', additionalProperties: true }, {}, { nullIfEmpty: true }),
    target: choiceField(['service', 'router', 'other'], {
      otherwise: 'service',
      settable: 'create',
    }),
  }),
  symbols: ['name', 'schema', 'target'],
  lists: {
    configs: {
      of: 'config',
      through: 'naming',
      by: 'configTypeId',
      operationId: 'listConfigsForConfigType',
    },
  },
})

export type ConfigType = EntityOf<typeof configType>
