import type { NamedSchema } from '../../entities/operations.ts'
import { text } from '../../entities/shapes.ts'

/** For people and for support: what is in it may differ from release to release. */
const anything = { type: ['object', 'null'], additionalProperties: true } as const

export const debugFacts: NamedSchema = {
  name: 'clusterDebugFacts',
  schema: {
    type: 'object',
    properties: {
      version: anything,
      limits: anything,
      node: anything,
      vitals: anything,
      process: anything,
      metrics: { ...text, description: 'in the Prometheus text format' },
    },
    required: ['limits', 'metrics', 'node', 'process', 'version', 'vitals'],
    additionalProperties: false,
  },
}
