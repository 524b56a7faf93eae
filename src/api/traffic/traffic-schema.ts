import type { NamedSchema } from '../../entities/operations.ts'
import { arraySchema, closedObject, dateTime, text } from '../../entities/shapes.ts'
import { integer } from '../schemas/envelope.ts'

const number = { type: 'number' } as const

const totals = closedObject({
  rxBytes: {
    ...integer,
    description: 'read by routers; of a service: read from its clients',
  },
  txBytes: {
    ...integer,
    description: 'written by routers; of a service: written to its clients',
  },
  circuits: {
    ...integer,
    description: 'circuits that were created; of a router: those whose path contains it',
  },
  dialFailures: {
    ...integer,
    description:
      'of a service: dials for which no circuit could be created; of a router: failed attempts to reach its terminators',
  },
  latencyMs: {
    type: ['number', 'null'],
    description:
      'of a service: mean time to create a circuit; of a router: mean round trip over its links. null: not measured',
  },
})

const span = closedObject({
  periodSeconds: integer,
  startedAt: { ...dateTime, description: 'start of the first period' },
  rxBytes: arraySchema(integer),
  txBytes: arraySchema(integer),
  circuits: arraySchema(integer),
  dialFailures: arraySchema(integer),
  latencyMs: arraySchema({ type: ['number', 'null'] }),
  totals,
})

const silentControllers = {
  ...arraySchema(text),
  description: 'controllers that did not respond within 3 s; their numbers are missing',
}

const record = { entity: text, id: text, name: text, hour: span, day: span }

/** Traffic of one service or router: the last hour by minute, the last day by quarter hour. */
export const trafficDetail: NamedSchema = {
  name: 'trafficDetail',
  schema: closedObject({ ...record, silentControllers }),
}

/** The services or routers with the most traffic, and the sum of all others. */
export const trafficTop: NamedSchema = {
  name: 'trafficTop',
  schema: closedObject({
    by: text,
    rows: arraySchema(closedObject(record)),
    other: closedObject({ hour: totals, day: totals }),
    recordCount: { ...number, description: 'services or routers with traffic in the last day' },
    silentControllers,
  }),
}
