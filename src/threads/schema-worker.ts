import { Worker } from 'node:worker_threads'

import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import type { Clock } from '../lib/clock.ts'
import { FairQueue } from '../lib/bounds/fair-queue.ts'
import { type FieldFault, Problem } from '../lib/problems.ts'
import type { SchemaJudge } from '../ports/schema-judge.ts'
import type { SchemaQuestion, SchemaReport } from './schema-messages.ts'
import { heapLimits, threadFile } from './thread-file.ts'

export interface SchemaWorkerLimits {
  /**
   * Processor time of one judgement; beyond it the thread is ended and another takes its place.
   */
  readonly schemaMsMax: number
  /** In line; who has waited for longer is sent away. */
  readonly schemaWaitMsMax: number
  /** In all for one judgement, where the processor has no time for it. */
  readonly schemaLateMsMax: number
  /** Judgements in line, of all callers. */
  readonly schemasWaitingMax: number
}

/** Of the thread's heap; a schema that needs more ends the thread, not the process. */
const HEAP_MEGABYTES_MAX = 128
/** From its start until it can judge; a machine under load takes its time. */
const START_MS_MAX = 8_000

/** Between two looks at a judgement that is late. */
const LOOK_MS_MIN = 20

/** Of a judgement. */
interface Begin {
  /** Monotonic ms. */
  readonly atMs: number
  /** By the thread until then. */
  readonly used: ReturnType<Worker['cpuUsage']>
}

interface Job {
  readonly question: SchemaQuestion
  readonly queuedAtMs: number
  readonly resolve: (fault: FieldFault | null) => void
  readonly reject: (error: Error) => void
}

/**
 * One thread, one judgement at a time, callers in turn. The thread starts with the first judgement
 * and keeps no process alive.
 */
export class SchemaWorker implements SchemaJudge {
  readonly #limits: SchemaWorkerLimits
  readonly #clock: Clock
  readonly #queue: FairQueue<Job>
  #worker: Worker | null = null
  #isReady = false
  #job: Job | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(limits: SchemaWorkerLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
    this.#queue = new FairQueue(limits.schemasWaitingMax)
  }

  judgeSchema(schema: JsonObject, caller: string): Promise<FieldFault | null> {
    return this.#judge({ schema, data: undefined }, caller)
  }

  judgeData(schema: JsonObject, data: Json, caller: string): Promise<FieldFault | null> {
    return this.#judge({ schema, data }, caller)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const job of this.#queue.drain()) job.reject(tooMany())
    this.#end()?.reject(tooMany())
    const worker = this.#worker
    this.#worker = null
    await worker?.terminate()
  }

  #judge(question: SchemaQuestion, caller: string): Promise<FieldFault | null> {
    return new Promise((resolve, reject) => {
      const job = { question, queuedAtMs: this.#clock.monotonicMs(), resolve, reject }
      if (this.#isClosed || !this.#queue.push(caller, job)) reject(tooMany())
      else this.#next()
    })
  }

  #next(): void {
    while (this.#job === null) {
      const job = this.#queue.shift()
      if (job === undefined) return
      if (this.#clock.monotonicMs() - job.queuedAtMs > this.#limits.schemaWaitMsMax) {
        job.reject(tooMany())
        continue
      }
      this.#job = job
    }
    if (this.#worker === null) this.#start()
    else if (this.#isReady && this.#timer === undefined) this.#ask(this.#worker, this.#job)
  }

  #start(): void {
    const worker = new Worker(threadFile('schema'), {
      name: 'schemas',
      env: {},
      resourceLimits: heapLimits(HEAP_MEGABYTES_MAX),
    })
    worker.unref()
    worker.on('message', (report: SchemaReport) => {
      if (worker === this.#worker) this.#take(worker, report)
    })
    worker.on('error', (error) => {
      this.#replace(worker, error)
    })
    worker.on('exit', (code) => {
      this.#replace(worker, new Error(`the thread of schemas has ended with code ${code}`))
    })
    this.#worker = worker
    this.#isReady = false
    this.#timer = setTimeout(() => {
      this.#replace(worker, tooBusy())
    }, START_MS_MAX)
  }

  #take(worker: Worker, report: SchemaReport): void {
    if (report.type === 'judged') {
      this.#end()?.resolve(report.fault)
      this.#next()
      return
    }
    this.#isReady = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#job !== null) this.#ask(worker, this.#job)
  }

  #ask(worker: Worker, job: Job): void {
    const begin: Begin = { atMs: this.#clock.monotonicMs(), used: worker.cpuUsage() }
    // Looked at when it is late; of a thread that has ended by then there is nothing to tell.
    begin.used.catch(() => undefined)
    this.#lookIn(this.#limits.schemaMsMax, worker, job, begin)
    worker.postMessage(job.question)
  }

  #lookIn(ms: number, worker: Worker, job: Job, begin: Begin): void {
    this.#timer = setTimeout(() => {
      this.#look(worker, job, begin).catch((error: unknown) => {
        if (job === this.#job) this.#replace(worker, error as Error)
      })
    }, ms)
  }

  /**
   * A judgement that is late has used its time, or had none of the processor: the one is its
   * caller's fault, the other is not.
   */
  async #look(worker: Worker, job: Job, { atMs, used }: Begin): Promise<void> {
    const { schemaMsMax, schemaLateMsMax } = this.#limits
    const { user, system } = await worker.cpuUsage(await used)
    if (job !== this.#job) return
    const leftMs = schemaMsMax - (user + system) / 1000
    if (leftMs <= 0) this.#replace(worker, null)
    else if (this.#clock.monotonicMs() - atMs >= schemaLateMsMax) {
      this.#replace(worker, tooBusy())
    } else this.#lookIn(Math.max(leftMs, LOOK_MS_MIN), worker, job, { atMs, used })
  }

  /** @returns the judgement at work, which is none any more. */
  #end(): Job | null {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const job = this.#job
    this.#job = null
    return job
  }

  /**
   * `error` null: it ran out of time. What it was at is refused; the next one gets a fresh thread.
   */
  #replace(worker: Worker, error: (Error & { readonly code?: string }) | null): void {
    if (worker !== this.#worker) return
    this.#worker = null
    const job = this.#end()
    worker.terminate().catch(() => undefined)
    if (error === null) {
      job?.resolve(endless(job, `could not be validated within ${this.#limits.schemaMsMax} ms`))
    } else if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') {
      job?.resolve(endless(job, `could not be validated within ${HEAP_MEGABYTES_MAX} MiB`))
    } else job?.reject(error)
    this.#next()
  }
}

function endless({ question }: Job, what: string): FieldFault {
  const field = question.data === undefined ? 'schema' : 'data'
  return { field, reason: `${field} ${what}; simplify the schema of the config type` }
}

function tooBusy(): Problem {
  const detail = 'the controller is too busy to validate this now'
  return new Problem('TIMEOUT', { detail, retryAfterSeconds: 1 })
}

function tooMany(): Problem {
  return new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 1 })
}
