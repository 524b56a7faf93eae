import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Counts the requests of one connection that arrived before the answer to an earlier one was sent
 * (RFC 9112, 9.3.2). Each of them holds memory until its turn comes, and all that arrive in one
 * packet are read at once, so their number is bounded.
 */
export class PipelinedRequests {
  readonly #max: number
  readonly #waiting = new WeakMap<Socket, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** @returns false when the request was one too many, and its connection has been closed. */
  admit({ socket }: IncomingMessage, response: ServerResponse): boolean {
    // A response has its socket at once unless an earlier one still occupies it.
    if (response.socket !== null) return true
    const count = (this.#waiting.get(socket) ?? 0) + 1
    if (count > this.#max) {
      socket.destroy()
      return false
    }
    this.#waiting.set(socket, count)
    response.once('close', () => {
      this.#waiting.set(socket, (this.#waiting.get(socket) ?? 1) - 1)
    })
    return true
  }
}
