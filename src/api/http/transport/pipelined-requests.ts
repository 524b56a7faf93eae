import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import { clientAddress } from '../../../lib/bounds/client-address.ts'
import { sourceNetwork } from '../../../lib/bounds/source-network.ts'
import type { UnreadResponses } from './unread-responses.ts'

/**
 * Requests that arrived on a connection before the response to an earlier request was sent (HTTP
 * pipelining, RFC 9112, 9.3.2). The number of such requests is limited, because Node.js reads all
 * requests of one packet together. Each request waits until the previous response was sent, so a
 * connection has at most one unsent response.
 */
export class PipelinedRequests {
  readonly #max: number
  readonly #unsent: UnreadResponses
  /** Functions that release the resources of waiting requests. */
  readonly #waiting = new WeakMap<Socket, Set<() => void>>()

  constructor(max: number, unsent: UnreadResponses) {
    this.#max = max
    this.#unsent = unsent
  }

  /**
   * Starts the request immediately, or after the responses to earlier requests. Closes the
   * connection if too many requests wait, or if no memory is left for another request from its
   * source.
   */
  admit({ socket }: IncomingMessage, response: ServerResponse, begin: () => void): void {
    // A response has its socket from the start, unless an earlier response still uses the socket.
    // @guard unread-answers-of-many--begun
    if (response.socket !== null) {
      begin()
      return
    }
    const waiting = this.#waitingOf(socket)
    const source = sourceNetwork(clientAddress(socket))
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
