import { defineEntity, type EntityOf } from '../define.ts'
import { integer, timestamp } from '../fields.ts'

/** The one record of the kind. */
export const logTimeResetId = 'last'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Trace of the times that log time was brought back; served by no API. Stamps of the log
 * never run back, so that from a reset on log time is behind them.
 */
export const logTimeReset = defineEntity({
  name: 'logTimeReset',
  plural: 'logTimeResets',
  since: 2,
  isPublished: false,
  operations: {},
  fields: {
    /** How far log time is behind the stamps; it only grows. */
    setbackMs: integer(hidden),
    /** Request ids that were made before this time are expired, unless they are remembered. */
    requestFloorMs: timestamp(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type LogTimeReset = EntityOf<typeof logTimeReset>
