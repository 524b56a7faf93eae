import { FairQueue } from '../../lib/bounds/fair-queue.ts'

/** Runs so many tasks at once; those that wait have their turn by who has asked for them. */
export class DialPool {
  readonly #workersMax: number
  readonly #waiting: FairQueue<() => Promise<void>>
  #running = 0

  constructor(options: { readonly workersMax: number; readonly waitingMax: number }) {
    this.#workersMax = options.workersMax
    this.#waiting = new FairQueue(options.waitingMax)
  }

  /**
   * @param task never rejects.
   * @returns false when it is not run: too many wait.
   */
  run(caller: string, task: () => Promise<void>): boolean {
    if (this.#running >= this.#workersMax) return this.#waiting.push(caller, task)
    void this.#work(task)
    return true
  }

  async #work(first: () => Promise<void>): Promise<void> {
    this.#running += 1
    for (let task: typeof first | undefined = first; task !== undefined;) {
      await task()
      task = this.#waiting.shift()
    }
    this.#running -= 1
  }
}
