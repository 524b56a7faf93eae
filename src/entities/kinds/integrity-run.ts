import { defineEntity, type EntityOf } from '../define-entity.ts'
import { booleanField, objectField, textField, timestampField } from '../fields.ts'

/** Id of the only record of the kind: the current or last run. */
export const integrityRunRecordId = 'run'

interface IntegrityFinding {
  readonly [name: string]: string | boolean
  readonly description: string
  readonly fixed: boolean
}

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * A check of the indexes, digests and references, or a repair of them, with its findings; served by
 * dedicated operations.
 */
export const integrityRun = defineEntity({
  name: 'integrityRun',
  plural: 'integrityRuns',
  isPublished: false,
  operations: {},
  fields: {
    runId: textField(hidden),
    isFixing: booleanField(hidden),
    isInProgress: booleanField(hidden),
    /**
     * Ids of the controller and of its process that run the check, separated by a space; '' until a
     * controller has started the check.
     */
    runner: textField(hidden),
    startedAt: timestampField(hidden),
    endedAt: timestampField(hidden),
    /** Reason of a failure; '' after success and while the check is running. */
    error: textField(hidden),
    findings: objectField<readonly IntegrityFinding[]>({ type: 'array' }, [], hidden),
    hasMore: booleanField(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type IntegrityRun = EntityOf<typeof integrityRun>
