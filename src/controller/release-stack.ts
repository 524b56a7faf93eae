import type { Logger } from 'pino'

/** Closes a component that was opened. */
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

  /** Closes everything. A step that fails is logged, and the other steps still run. */
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
