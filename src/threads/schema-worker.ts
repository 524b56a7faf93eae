import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import type { Clock } from '../lib/clock.ts'
import { type FieldFault, Problem } from '../lib/problems.ts'
import type { SchemaValidator } from '../api/schemas/schema-validator.ts'
import type { SchemaValidationRequest } from './schema-messages.ts'
import { TaskLimitError, WorkerQueue } from './worker-queue.ts'

interface SchemaWorkerLimits {
  /**
   * Maximum processor time of one validation; if it takes more, a new thread replaces the thread.
   */
  readonly schemaMsMax: number
  /** Maximum wait of a validation in the queue; a validation that waits longer is refused. */
  readonly schemaWaitMsMax: number
  /**
   * Maximum elapsed time of one validation; greater than the maximum processor time, because the
   * processor may be busy with other work.
   */
  readonly schemaLateMsMax: number
  /** Maximum validations in the queue, in total for all callers. */
  readonly schemasWaitingMax: number
}

/**
 * Heap limit of the thread; a schema that needs more memory terminates the thread, not the process.
 */
const HEAP_MEGABYTES_MAX = 128

/** Validates schemas and values, one at a time. */
export class SchemaWorker implements SchemaValidator {
  readonly #limits: SchemaWorkerLimits
  readonly #queue: WorkerQueue<SchemaValidationRequest, FieldFault | null>

  constructor(limits: SchemaWorkerLimits, clock: Clock) {
    this.#limits = limits
    this.#queue = new WorkerQueue({
      thread: 'schema',
      heapMegabytesMax: HEAP_MEGABYTES_MAX,
      inThreadMax: 1,
      limits: {
        taskMsMax: limits.schemaMsMax,
        lateMsMax: limits.schemaLateMsMax,
        waitMsMax: limits.schemaWaitMsMax,
        waitingMax: limits.schemasWaitingMax,
      },
      clock,
    })
  }

  validateSchema(schema: JsonObject, caller: string): Promise<FieldFault | null> {
    return this.#judge({ schema, data: undefined }, caller)
  }

  validateData(schema: JsonObject, data: Json, caller: string): Promise<FieldFault | null> {
    return this.#judge({ schema, data }, caller)
  }

  close(): Promise<void> {
    return this.#queue.close()
  }

  async #judge(question: SchemaValidationRequest, caller: string): Promise<FieldFault | null> {
    try {
      return await this.#queue.run(caller, () => question)
    } catch (error) {
      if (!(error instanceof TaskLimitError)) throw error
      if (error.reason === 'processor time') {
        return endless(question, `${this.#limits.schemaMsMax} ms`)
      }
      if (error.reason === 'memory') return endless(question, `${HEAP_MEGABYTES_MAX} MiB`)
      const detail = 'the controller is too busy to validate this now'
      throw new Problem('TIMEOUT', { detail, retryAfterSeconds: 1 })
    }
  }
}

function endless({ data }: SchemaValidationRequest, bound: string): FieldFault {
  const field = data === undefined ? 'schema' : 'data'
  const reason = `${field} could not be validated within ${bound}; simplify the schema of the config type`
  return { field, reason }
}
