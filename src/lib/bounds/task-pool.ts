import { FairQueue } from './fair-queue.ts'
import { FairShare } from './fair-share.ts'

interface WaitingTask {
  readonly caller: string
  readonly task: () => Promise<void>
}

/**
 * Runs up to `workersMax` tasks at the same time. Callers share the workers and the queue fairly:
 * even if a caller's tasks never end, some workers remain for other callers.
 */
export class TaskPool {
  readonly #workers: FairShare
  readonly #waiting: FairQueue<WaitingTask>

  constructor(options: { readonly workersMax: number; readonly waitingMax: number }) {
    this.#workers = new FairShare(options.workersMax)
    this.#waiting = new FairQueue(options.waitingMax)
  }

  /**
   * Runs a task as soon as a worker is free.
   * @param task must not reject.
   * @returns false when the task is refused because too many tasks wait, in total or for this
   * caller.
   */
  run(caller: string, task: () => Promise<void>): boolean {
    // @guard dials-of-one-client--workers
    if (!this.#workers.hasRoomFor(caller)) return this.#waiting.push(caller, { caller, task })
    void this.#work({ caller, task })
    return true
  }

  async #work({ caller, task }: WaitingTask): Promise<void> {
    this.#workers.take(caller)
    await task()
    this.#workers.giveBack(caller)
    for (let next = this.#next(); next !== undefined; next = this.#next()) void this.#work(next)
  }

  #next(): WaitingTask | undefined {
    return this.#waiting.shift((caller) => this.#workers.hasRoomFor(caller))
  }
}
