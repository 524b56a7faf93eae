import type { NamedSchema } from '../entities/operations.ts'

const time = { type: ['string', 'null'], format: 'date-time' } as const

export const integrityResult: NamedSchema = {
  name: 'dataIntegrityCheckDetails',
  schema: {
    type: 'object',
    properties: {
      startTime: { ...time, description: 'null before the first run' },
      endTime: { ...time, description: 'null before the first run and while one goes on' },
      inProgress: { type: 'boolean' },
      fixingErrors: { type: 'boolean' },
      error: { type: 'string', description: 'why the run did not go through' },
      tooManyErrors: { type: 'boolean', description: 'there were more than results has' },
      results: {
        type: 'array',
        items: {
          type: 'object',
          properties: { description: { type: 'string' }, fixed: { type: 'boolean' } },
          required: ['description', 'fixed'],
          additionalProperties: false,
        },
      },
    },
    required: [
      'endTime',
      'error',
      'fixingErrors',
      'inProgress',
      'results',
      'startTime',
      'tooManyErrors',
    ],
    additionalProperties: false,
  },
}
