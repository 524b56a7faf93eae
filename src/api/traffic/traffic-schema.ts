import type { NamedSchema } from '../../entities/operations.ts'
import {
  arraySchema,
  closedObjectSchema,
  dateTimeSchema,
  textSchema,
} from '../../entities/response-schemas.ts'
import { integerSchema } from '../schemas/envelope.ts'

const number = { type: 'number' } as const

const totals = closedObjectSchema({
  rxBytes: {
    ...integerSchema,
    description: 'read by routers; of a service: read from its clients',
  },
  txBytes: {
    ...integerSchema,
    description: 'written by routers; of a service: written to its clients',
  },
  circuits: {
    ...integerSchema,
    description: 'circuits that were created; of a router: those whose path contains it',
  },
  dialFailures: {
    ...integerSchema,
    description:
      'of a service: dials for which no circuit could be created; of a router: failed attempts to reach its terminators',
  },
  latencyMs: {
    type: ['number', 'null'],
    description:
      'of a service: mean time to create a circuit; of a router: mean round trip over its links. null: not measured',
  },
})

const span = closedObjectSchema({
  periodSeconds: integerSchema,
  startedAt: { ...dateTimeSchema, description: 'start of the first period' },
  rxBytes: arraySchema(integerSchema),
  txBytes: arraySchema(integerSchema),
  circuits: arraySchema(integerSchema),
  dialFailures: arraySchema(integerSchema),
  latencyMs: arraySchema({ type: ['number', 'null'] }),
  totals,
})

const silentControllers = {
  ...arraySchema(textSchema),
  description: 'controllers that did not respond within 3 s; their numbers are missing',
}

const record = { entity: textSchema, id: textSchema, name: textSchema, hour: span, day: span }

/** Traffic of one service or router: the last hour by minute, the last day by quarter hour. */
export const trafficDetailSchema: NamedSchema = {
  name: 'trafficDetail',
  schema: closedObjectSchema({ ...record, silentControllers }),
}

/** The services or routers with the most traffic, and the sum of all others. */
export const topTrafficSchema: NamedSchema = {
  name: 'trafficTop',
  schema: closedObjectSchema({
    by: textSchema,
    rows: arraySchema(closedObjectSchema(record)),
    other: closedObjectSchema({ hour: totals, day: totals }),
    recordCount: { ...number, description: 'services or routers with traffic in the last day' },
    silentControllers,
  }),
}
