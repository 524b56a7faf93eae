import { TaskPool } from '../../lib/bounds/task-pool.ts'
import type { RouterConfig } from '../../config/router/table.ts'

/**
 * Terminator requests to controllers, of hosting clients and the tunnel. Limits the number of
 * concurrent requests; waiting callers take turns.
 */
export class ControllerOperations {
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
   * @param operation settles with its answer or timeout.
   * @returns its result.
   * @throws {Error} when too many operations wait.
   */
  run<T>(caller: string, operation: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const isTaken = this.#pool.run(caller, () => operation().then(resolve, reject))
    if (!isTaken) reject(new Error('too many operations wait (forwarder.rateLimitedQueueLength)'))
    return promise
  }
}
