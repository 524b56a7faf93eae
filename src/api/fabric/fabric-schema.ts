import type { NamedSchema } from '../../entities/operations.ts'
import { entityRef, flag, text, wholeObject, arraySchema } from '../../entities/shapes.ts'
import { baseProperties, baseRequired } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

/** JSON Schemas for links and circuits between routers. */
const whole = { type: 'integer', minimum: 0 } as const
export const link: NamedSchema = {
  name: 'linkDetail',
  schema: wholeObject({
    id: text,
    protocol: text,
    sourceRouter: entityRef,
    destRouter: entityRef,
    state: { type: 'string', enum: ['Pending', 'Connected'] },
    down: flag,
    iteration: whole,
    staticCost: whole,
    cost: whole,
    sourceLatency: whole,
    destLatency: whole,
    connections: arraySchema(wholeObject({ type: text, source: text, dest: text })),
  }),
}
export const circuit: NamedSchema = {
  name: 'circuitDetail',
  schema: {
    type: 'object',
    properties: {
      ...baseProperties,
      clientId: text,
      service: entityRef,
      terminator: entityRef,
      path: wholeObject({
        nodes: { type: 'array', items: entityRef },
        links: { type: 'array', items: entityRef },
      }),
    },
    required: [...baseRequired, 'clientId', 'service', 'terminator', 'path'],
  },
}

export const linkPatch = objectSchema('linkPatch', {
  down: { type: ['boolean', 'null'] },
  staticCost: { type: ['integer', 'null'], minimum: 0 },
})

export const circuitDelete = objectSchema('circuitDelete', {
  immediate: { type: ['boolean', 'null'] },
})
