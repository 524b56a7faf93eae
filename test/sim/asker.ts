import type { Controller, Life } from './controller.ts'
import type { VirtualLoop } from './virtual-loop.ts'

/**
 * Sends requests to controllers as a client; if the process ends in the meantime, no answer
 * arrives.
 */
export class Asker {
  readonly #loop: VirtualLoop
  /** Pending requests to a process that may end. */
  readonly #waiting = new Map<Life, Set<(isOver: true) => void>>()

  constructor(loop: VirtualLoop) {
    this.#loop = loop
  }

  /** The process has ended, so the connections of its clients break. */
  onOver(life: Life): void {
    const waiting = this.#waiting.get(life)
    this.#waiting.delete(life)
    for (const end of waiting ?? []) end(true)
  }

  /** @returns 'over' when the process that received the request has ended. */
  async ask<T>(controller: Controller, question: (life: Life) => Promise<T>): Promise<T | 'over'> {
    const { life } = controller
    if (life === null) return 'over'
    const waiting = this.#waiting.get(life) ?? new Set()
    this.#waiting.set(life, waiting)
    return await new Promise<T | 'over'>((resolve, reject) => {
      const end = (): void => resolve('over')
      waiting.add(end)
      this.#loop
        .within(life.threads.main, () => question(life))
        .then(resolve, reject)
        .finally(() => waiting.delete(end))
    })
  }

  async pause(delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#loop.after(delayMs, resolve)
    })
  }
}
