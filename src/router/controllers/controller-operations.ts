import { TaskPool } from '../../lib/bounds/task-pool.ts'
import type { RouterConfig } from '../../config/router/table.ts'

/**
 * Changes of terminators that controllers are asked for: so many at a time, for clients that host
 * and for the tunnel together; those that wait have their turn by who has asked.
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
   * @param operation ends with its answer, or when none is waited for any more.
   * @returns its outcome.
   * @throws {Error} when too many wait.
   */
  run<T>(caller: string, operation: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const isTaken = this.#pool.run(caller, () => operation().then(resolve, reject))
    if (!isTaken) reject(new Error('too many operations wait (forwarder.rateLimitedQueueLength)'))
    return promise
  }
}
