import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import { sourceNetwork } from '../../../lib/bounds/source.ts'
import type { UnsentAnswers } from './unsent-answers.ts'

/**
 * Requests of one connection that arrived before the answer to an earlier one was sent (RFC 9112,
 * 9.3.2). All that arrive in one packet are read at once, so their number is bounded; and none is
 * begun before the answer to the one before has left, so that a connection is owed one answer.
 */
export class PipelinedRequests {
  readonly #max: number
  readonly #unsent: UnsentAnswers
  /** Functions that give back what each of them holds. */
  readonly #waiting = new WeakMap<Socket, Set<() => void>>()

  constructor(max: number, unsent: UnsentAnswers) {
    this.#max = max
    this.#unsent = unsent
  }

  /**
   * Begins the request now, or when it is its turn. One too many closes its connection, and so does
   * one for which its source has no room.
   */
  admit({ socket }: IncomingMessage, response: ServerResponse, begin: () => void): void {
    // A response has its socket at once unless an earlier one still occupies it.
    // @guard unread-answers-of-many--begun
    if (response.socket !== null) {
      begin()
      return
    }
    const waiting = this.#waitingOf(socket)
    const source = sourceNetwork(socket.remoteAddress ?? '')
    // @guard pipelined-requests--connection
    const hasPlace = waiting.size < this.#max
    const release = hasPlace ? this.#unsent.holdRequest(source, waiting.size === 0) : null
    if (release === null) {
      socket.destroy()
      return
    }
    waiting.add(release)
    response.once('socket', () => {
      waiting.delete(release)
      release()
      begin()
    })
  }

  #waitingOf(socket: Socket): Set<() => void> {
    const known = this.#waiting.get(socket)
    if (known !== undefined) return known
    const waiting = new Set<() => void>()
    this.#waiting.set(socket, waiting)
    socket.once('close', () => {
      for (const release of waiting) release()
      waiting.clear()
    })
    return waiting
  }
}
