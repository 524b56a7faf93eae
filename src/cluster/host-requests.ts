import type { HostCommand, MainLink } from './link.ts'

/** What main asks the host to do and waits for: each request is answered once, under its id. */
export class HostRequests {
  readonly #post: MainLink['post']
  readonly #waiting = new Map<number, (because: string | null) => void>()
  #nextId = 1

  constructor(post: MainLink['post']) {
    this.#post = post
  }

  /** @returns null when it was done or is under way, or why it was not. */
  async ask(command: (id: number) => HostCommand): Promise<string | null> {
    const id = this.#nextId
    this.#nextId += 1
    return await new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#post(command(id))
    })
  }

  answer(id: number, because: string | null): void {
    this.#waiting.get(id)?.(because)
    this.#waiting.delete(id)
  }

  /** None will be answered any more. */
  close(): void {
    for (const resolve of this.#waiting.values()) resolve('this controller is stopping')
    this.#waiting.clear()
  }
}
