import type { Logger } from 'pino'

/** Gives back something that was opened. */
export type Release = () => Promise<void> | void

/**
 * Parts that were opened, to be given back last first: after a stop as well as after a failed
 * start.
 */
export class Releases {
  readonly #steps: Release[] = []
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  push(release: Release): void {
    this.#steps.push(release)
  }

  /** A step that fails is told and keeps none of the others from its turn. */
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
