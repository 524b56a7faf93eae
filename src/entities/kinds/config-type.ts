import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { choice, nameText, object } from '../fields.ts'
import { published } from '../published.ts'

/**
 * A type of configs: a JSON Schema (draft-07) that validates their data, and the kinds of records
 * that may use them.
 */
export const configType = defineEntity({
  name: 'configType',
  plural: 'configTypes',
  isPublished: true,
  operations: {
    management: crud('config-type'),
  },
  fields: published({
    name: nameText(),
    /** Validated before it is proposed; empty: any data is valid. */
    schema: object({ type: 'object', additionalProperties: true }, {}, { nullIfEmpty: true }),
    target: choice(['service', 'router', 'other'], { otherwise: 'service', settable: 'create' }),
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
