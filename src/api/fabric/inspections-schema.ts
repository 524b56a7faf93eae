import type { NamedSchema } from '../../entities/operations.ts'
import { flag, text } from '../../entities/shapes.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

export const inspectionLimits = {
  regexCharactersMax: 256,
  requestedValuesMax: 16,
  nameCharactersMax: 128,
} as const

export const inspectRequest = objectSchema(
  'inspectRequest',
  {
    appRegex: {
      type: 'string',
      maxLength: inspectionLimits.regexCharactersMax,
      description: 'of ECMAScript, found anywhere in the id of a controller',
    },
    requestedValues: {
      type: 'array',
      maxItems: inspectionLimits.requestedValuesMax,
      items: { type: 'string', maxLength: inspectionLimits.nameCharactersMax },
      description: 'of config, cluster-status, connected-peers, data-model-index, metrics, runtime',
    },
  },
  ['appRegex', 'requestedValues'],
)

export const inspectResponse: NamedSchema = {
  name: 'inspectResponse',
  schema: {
    type: 'object',
    properties: {
      errors: { type: 'array', items: text, description: 'unknown names' },
      success: flag,
      values: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            appId: { ...text, description: 'the controller' },
            name: text,
            value: { description: 'an object; for metrics, text in the Prometheus format' },
          },
          required: ['appId', 'name', 'value'],
          additionalProperties: false,
        },
      },
    },
    required: ['errors', 'success', 'values'],
    additionalProperties: false,
  },
}
