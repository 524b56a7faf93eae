import { periodicScheduler } from '../lib/periodic-scheduler.ts'

/**
 * Looks again and again whether there is something to do, and does it: one run at a time, ended
 * with its owner. Keeps no process alive.
 */
export class PeriodicTask {
  readonly #everyMs: number
  readonly #run: () => Promise<void>
  readonly #stop = new AbortController()
  #running: Promise<void> | null = null
  #stopTimer: (() => void) | null = null

  /** @param run never rejects; ends soon once {@link stop} is aborted. */
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

  /** Runs now, unless a run is under way: then that one. Never rejects. */
  look(): Promise<void> {
    if (this.stop.aborted) return Promise.resolve()
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /** Resolves once the run that is under way has ended. */
  async close(): Promise<void> {
    this.#stopTimer?.()
    this.#stop.abort()
    await this.#running
  }
}
