import { periodicScheduler } from '../lib/periodic-scheduler.ts'

/**
 * Runs a task periodically, one run at a time, until `close` is called. Does not keep the process
 * alive.
 */
export class PeriodicTask {
  readonly #everyMs: number
  readonly #run: () => Promise<void>
  readonly #stop = new AbortController()
  #running: Promise<void> | null = null
  #stopTimer: (() => void) | null = null

  /** @param run must not reject, and must end soon after the signal {@link stop} is aborted. */
  constructor(everyMs: number, run: () => Promise<void>) {
    this.#everyMs = everyMs
    this.#run = run
  }

  get stop(): AbortSignal {
    return this.#stop.signal
  }

  start(): void {
    this.#stopTimer ??= periodicScheduler.every(this.#everyMs, () => void this.look())
  }

  /** Runs the task immediately, or waits for the run in progress. Never rejects. */
  look(): Promise<void> {
    if (this.stop.aborted) return Promise.resolve()
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /** Aborts the task, and resolves when the run in progress has ended. */
  async close(): Promise<void> {
    this.#stopTimer?.()
    this.#stop.abort()
    await this.#running
  }
}
