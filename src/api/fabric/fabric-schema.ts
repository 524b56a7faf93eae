import type { NamedSchema } from '../../entities/operations.ts'
import {
  entityRefSchema,
  booleanSchema,
  textSchema,
  openObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'
import { baseRecordProperties, baseRecordRequired } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

// JSON Schemas for links and circuits between routers.

const whole = { type: 'integer', minimum: 0 } as const
export const linkSchema: NamedSchema = {
  name: 'linkDetail',
  schema: openObjectSchema({
    id: textSchema,
    protocol: textSchema,
    sourceRouter: entityRefSchema,
    destRouter: entityRefSchema,
    state: { type: 'string', enum: ['Pending', 'Connected'] },
    down: booleanSchema,
    iteration: whole,
    staticCost: whole,
    cost: whole,
    sourceLatency: whole,
    destLatency: whole,
    connections: arraySchema(
      openObjectSchema({ type: textSchema, source: textSchema, dest: textSchema }),
    ),
  }),
}
export const circuitSchema: NamedSchema = {
  name: 'circuitDetail',
  schema: {
    type: 'object',
    properties: {
      ...baseRecordProperties,
      clientId: textSchema,
      service: entityRefSchema,
      terminator: entityRefSchema,
      path: openObjectSchema({
        nodes: { type: 'array', items: entityRefSchema },
        links: { type: 'array', items: entityRefSchema },
      }),
    },
    required: [...baseRecordRequired, 'clientId', 'service', 'terminator', 'path'],
  },
}

export const linkPatchSchema = objectSchema('linkPatch', {
  down: { type: ['boolean', 'null'] },
  staticCost: { type: ['integer', 'null'], minimum: 0 },
})

export const circuitDeleteSchema = objectSchema('circuitDelete', {
  immediate: { type: ['boolean', 'null'] },
})
