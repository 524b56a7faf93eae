import { Worker } from 'node:worker_threads'

import { requirePresent } from '../lib/assert.ts'
import type { Clock } from '../lib/clock.ts'
import { FairQueue } from '../lib/bounds/fair-queue.ts'
import { Problem } from '../lib/problems.ts'
import { heapLimits, threadProgramUrl } from './thread-file.ts'

interface WorkerQueueLimits {
  /** Maximum processor time of one task; if it takes more, a new thread replaces the thread. */
  readonly taskMsMax: number
  /**
   * Maximum elapsed time of one task; no less than the maximum processor time, because the
   * processor may be busy with other work.
   */
  readonly lateMsMax: number
  /** Maximum wait of a task in the queue; a task that waits longer is refused. */
  readonly waitMsMax: number
  /** Maximum tasks in the queue, in total for all callers. */
  readonly waitingMax: number
}

interface WorkerQueueDeps {
  readonly thread: 'schema' | 'certificate'
  readonly workerData?: unknown
  readonly heapMegabytesMax: number
  /**
   * Maximum tasks sent to the thread at a time; other tasks wait in the queue, which serves callers
   * round robin.
   */
  readonly inThreadMax: number
  readonly limits: WorkerQueueLimits
  readonly clock: Clock
}

/**
 * Reason why a task did not finish. `not started`: the thread never ran the task. Otherwise the
 * thread was terminated because the task exceeded this limit.
 */
type OverrunReason = 'processor time' | 'memory' | 'late' | 'not started'

/** Error of a task that did not finish within a limit, after which its thread was terminated. */
export class TaskLimitError extends Error {
  readonly reason: OverrunReason

  constructor(reason: OverrunReason) {
    super(`the task of a thread was ended: ${reason}`)
    this.reason = reason
  }
}

/** Timeout from the start of a thread until it is ready, on a machine under load. */
const START_MS_MAX = 8_000
/** Minimum time between two checks whether a task is late. */
const CHECK_MS_MIN = 20

interface Job<Message, Result> {
  readonly message: () => Message
  readonly queuedAtMs: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: Error) => void
}

/** Measurements of the thread at the start of its current task. */
interface Begin {
  /** Monotonic ms. */
  readonly atMs: number
  /** Processor time that the thread had used when the task started. */
  readonly used: ReturnType<Worker['cpuUsage']>
}

/**
 * A thread that executes the tasks of several callers, one caller after the other (round robin).
 * The thread sends one message when it is ready, then one result per message, in order. The first
 * task starts the thread, which does not keep the process alive. When a task exceeds its limits or
 * terminates the thread, a new thread replaces it.
 */
export class WorkerQueue<Message, Result> {
  readonly #deps: WorkerQueueDeps
  readonly #queue: FairQueue<Job<Message, Result>>
  /** Tasks that were sent to the thread; the running task is first. */
  #jobs: Job<Message, Result>[] = []
  #worker: Worker | null = null
  #isReady = false
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(deps: WorkerQueueDeps) {
    this.#deps = deps
    this.#queue = new FairQueue(deps.limits.waitingMax)
  }

  /**
   * Runs a task in the thread.
   * @param message creates the message just before it is sent to the thread; if it throws, the task
   * is rejected with that error.
   * @throws {TaskLimitError}
   * @throws {Problem} when too many tasks wait, or the task waited too long.
   */
  run(caller: string, message: () => Message): Promise<Result> {
    return new Promise((resolve, reject) => {
      const job = { message, queuedAtMs: this.#deps.clock.monotonicMs(), resolve, reject }
      // @guard schema-judge-kept-busy
      if (this.#isClosed || !this.#queue.push(caller, job)) reject(tooMany())
      else this.#next()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const job of [...this.#takeJobs(), ...this.#queue.drain()]) job.reject(tooMany())
    const worker = this.#worker
    this.#worker = null
    await worker?.terminate()
  }

  #next(): void {
    const { clock, limits, inThreadMax } = this.#deps
    while (this.#jobs.length < inThreadMax) {
      const job = this.#queue.shift()
      if (job === undefined) return
      if (clock.monotonicMs() - job.queuedAtMs > limits.waitMsMax) job.reject(tooMany())
      else this.#hand(job)
    }
  }

  #hand(job: Job<Message, Result>): void {
    if (this.#worker === null) this.#start()
    if (this.#worker === null || !this.#isReady) this.#jobs.push(job)
    else this.#send(this.#worker, job)
  }

  #start(): void {
    const { thread, workerData, heapMegabytesMax } = this.#deps
    const worker = new Worker(threadProgramUrl(thread), {
      name: thread,
      env: {},
      workerData,
      resourceLimits: heapLimits(heapMegabytesMax),
    })
    worker.unref()
    worker.on('message', (message: unknown) => {
      if (worker === this.#worker) this.#take(worker, message)
    })
    worker.on('error', (error: Error & { readonly code?: string }) => {
      const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      this.#replace(worker, isMemory ? new TaskLimitError('memory') : error)
    })
    worker.on('exit', (code) => {
      this.#replace(worker, new Error(`the ${thread} thread has ended with code ${code}`))
    })
    this.#worker = worker
    this.#isReady = false
    this.#timer = setTimeout(() => {
      this.#replace(worker, new TaskLimitError('not started'))
    }, START_MS_MAX)
  }

  #take(worker: Worker, message: unknown): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isReady) {
      const job = requirePresent(this.#jobs.shift(), 'a thread sends one result for each task')
      if (this.#jobs.length > 0) this.#watch(worker)
      job.resolve(message as Result)
    } else {
      this.#isReady = true
      for (const job of this.#jobs.splice(0)) this.#send(worker, job)
    }
    this.#next()
  }

  #send(worker: Worker, job: Job<Message, Result>): void {
    try {
      worker.postMessage(job.message())
    } catch (error) {
      job.reject(error as Error)
      return
    }
    this.#jobs.push(job)
    if (this.#timer === undefined) this.#watch(worker)
  }

  /**
   * Starts to measure the task that the thread starts now: a task that was sent to the idle thread,
   * or the next one after the thread has sent the previous result.
   */
  #watch(worker: Worker): void {
    const begin: Begin = { atMs: this.#deps.clock.monotonicMs(), used: worker.cpuUsage() }
    // The value is awaited only if the task is still running after `taskMsMax`. An error is
    // ignored, because it means that the thread has already stopped.
    begin.used.catch(() => undefined)
    this.#checkIn(this.#deps.limits.taskMsMax, worker, begin)
  }

  #checkIn(ms: number, worker: Worker, begin: Begin): void {
    const job = this.#jobs[0]
    this.#timer = setTimeout(() => {
      const isAtWork = (): boolean => worker === this.#worker && job === this.#jobs[0]
      this.#check(worker, begin, isAtWork).catch((error: unknown) => {
        if (isAtWork()) this.#replace(worker, error as Error)
      })
    }, ms)
  }

  /**
   * Decides why a task is late. If it used its processor time, its caller is at fault; if the
   * thread got no processor time, the caller is not at fault.
   */
  async #check(worker: Worker, begin: Begin, isAtWork: () => boolean): Promise<void> {
    const { taskMsMax, lateMsMax } = this.#deps.limits
    const { user, system } = await worker.cpuUsage(await begin.used)
    if (!isAtWork()) return
    const leftMs = taskMsMax - (user + system) / 1000
    const isLate = this.#deps.clock.monotonicMs() - begin.atMs >= lateMsMax
    // @guard schema-judge-kept-busy--late
    if (leftMs <= 0) this.#replace(worker, new TaskLimitError('processor time'))
    else if (isLate) this.#replace(worker, new TaskLimitError('late'))
    else this.#checkIn(Math.max(leftMs, CHECK_MS_MIN), worker, begin)
  }

  #takeJobs(): Job<Message, Result>[] {
    clearTimeout(this.#timer)
    this.#timer = undefined
    return this.#jobs.splice(0)
  }

  /**
   * Rejects the running task, or all tasks if the thread never became ready. A new thread runs the
   * remaining tasks.
   */
  #replace(worker: Worker, error: Error): void {
    if (worker !== this.#worker) return
    this.#worker = null
    worker.terminate().catch(() => undefined)
    const jobs = this.#takeJobs()
    for (const job of jobs.splice(0, this.#isReady ? 1 : jobs.length)) job.reject(error)
    for (const job of jobs) this.#hand(job)
    this.#next()
  }
}

function tooMany(): Problem {
  return new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 1 })
}
