import type { Logger } from 'pino'

/** Closes something that was opened. */
type Release = () => Promise<void> | void

/** Closes opened components in reverse order, when the controller stops or its start fails. */
export class Releases {
  readonly #steps: Release[] = []
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  push(release: Release): void {
    this.#steps.push(release)
  }

  /** Logs a failing step and continues with the others. */
  async releaseAll(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step()
      } catch (error) {
        this.#log.error({ err: error }, 'a component failed to stop')
      }
    }
  }
}
