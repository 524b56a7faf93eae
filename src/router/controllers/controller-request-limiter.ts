import { TaskPool } from '../../lib/bounds/task-pool.ts'
import type { RouterConfig } from '../../config/router/table.ts'

/**
 * Runs the requests to controllers about terminators of hosting clients and of the tunnel. Limits
 * the number of concurrent requests, which the callers share fairly.
 */
export class ControllerRequestLimiter {
  readonly #pool: TaskPool

  constructor(
    config: Pick<RouterConfig['forwarder'], 'rateLimitedWorkerCount' | 'rateLimitedQueueLength'>,
  ) {
    this.#pool = new TaskPool({
      workersMax: config.rateLimitedWorkerCount,
      waitingMax: config.rateLimitedQueueLength,
    })
  }

  /**
   * @param operation sends the request; its promise settles with the response or a timeout.
   * @returns the result of `operation`.
   * @throws {Error} when too many operations wait.
   */
  run<T>(caller: string, operation: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const isTaken = this.#pool.run(caller, () => operation().then(resolve, reject))
    if (!isTaken) reject(new Error('too many operations wait (forwarder.rateLimitedQueueLength)'))
    return promise
  }
}
