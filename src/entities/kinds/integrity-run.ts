import { defineEntity, type EntityOf } from '../define.ts'
import { boolean, object, text, timestamp } from '../fields.ts'

/** The one record of the kind: the run under way, or the last one. */
export const integrityRunId = 'run'

export interface IntegrityFinding {
  readonly [name: string]: string | boolean
  readonly description: string
  readonly fixed: boolean
}

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * A look through what is derived from the records, with its results; shown by operations of its
 * own.
 */
export const integrityRun = defineEntity({
  name: 'integrityRun',
  plural: 'integrityRuns',
  isPublished: false,
  operations: {},
  fields: {
    runId: text(hidden),
    isFixing: boolean(hidden),
    isInProgress: boolean(hidden),
    /** The controller that has taken it up; '' until one has. */
    runner: text(hidden),
    startedAt: timestamp(hidden),
    endedAt: timestamp(hidden),
    /** Why it did not go through; '' when it did, and while it goes on. */
    error: text(hidden),
    findings: object<readonly IntegrityFinding[]>({ type: 'array' }, [], hidden),
    hasMore: boolean(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type IntegrityRun = EntityOf<typeof integrityRun>
