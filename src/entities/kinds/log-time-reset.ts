import { defineEntity, type EntityOf } from '../define-entity.ts'
import { integerField, timestampField } from '../fields.ts'

/** Id of the only record of this kind. */
export const logTimeResetRecordId = 'last'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Records resets of log time; not served by any API. The timestamps of log entries never decrease,
 * so after a reset, log time is behind these timestamps.
 */
export const logTimeReset = defineEntity({
  name: 'logTimeReset',
  plural: 'logTimeResets',
  since: 2,
  isPublished: false,
  operations: {},
  fields: {
    /** How far log time is behind the timestamps of log entries; never decreases. */
    setbackMs: integerField(hidden),
    /**
     * Request ids created before this time count as expired, unless their outcome is still stored.
     */
    requestFloorMs: timestampField(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type LogTimeReset = EntityOf<typeof logTimeReset>
