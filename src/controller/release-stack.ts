import type { Logger } from 'pino'

/** A function that closes a component. */
type Release = () => Promise<void> | void

/** Closes opened components in reverse order, when the controller stops or its start fails. */
export class ReleaseStack {
  readonly #steps: Release[] = []
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  push(release: Release): void {
    this.#steps.push(release)
  }

  /** Closes everything. If a step fails, logs the error and continues with the other steps. */
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
