import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

import { type WebSocket, createWebSocketServer } from '../../lib/runtime/web-sockets.ts'
import { eventLimits } from '../limits.ts'

const REASON_BYTES_MAX = 123

export const webSocketCloseCode = { normal: 1000, goingAway: 1001, protocol: 1002 } as const

interface EventSocketHandlers {
  readonly onMessage: (data: Buffer) => void
  readonly onDrain: () => void
  /** Called once, when the connection ends for any reason. */
  readonly onClose: () => void
}

/** A request to upgrade to a WebSocket, from Node's server. */
export interface WebSocketUpgradeRequest {
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** Bytes that the client sent after its request. */
  readonly head: Buffer
}

const server = createWebSocketServer({
  messageBytesMax: eventLimits.webSocketMessageBytesMax,
  fragmentsMax: eventLimits.webSocketFragmentsMax,
  closeMs: eventLimits.eventLingerMs,
})

/**
 * Server side of a WebSocket, limited to what the management channel needs: binary messages without
 * extensions. Closes the connection after a message above the size limit or a violation of RFC
 * 6455.
 */
export class EventSocket {
  readonly #socket: Duplex
  #web: WebSocket | null = null
  #isClosing = false

  constructor({ request, socket, head }: WebSocketUpgradeRequest, handlers: EventSocketHandlers) {
    this.#socket = socket
    server.handleUpgrade(request, socket, head, (web) => this.#begin(web, handlers))
    // Calls the handler here if the client disconnected before the handlers were set.
    if (this.#web === null) setImmediate(handlers.onClose)
  }

  #begin(web: WebSocket, handlers: EventSocketHandlers): void {
    this.#web = web
    web.on('message', (data, isBinary) => {
      if (this.#isClosing) return
      if (isBinary) handlers.onMessage(data as Buffer)
      else this.close(webSocketCloseCode.protocol, 'only binary messages are accepted')
    })
    // Answers pings only while the client reads, so that responses do not accumulate.
    web.on('ping', (data) => {
      // @guard pings-without-reading
      if (!this.#socket.writableNeedDrain) web.pong(data)
    })
    web.on('error', () => this.close(webSocketCloseCode.protocol, ''))
    web.once('close', handlers.onClose)
    this.#socket.on('drain', handlers.onDrain)
  }

  /** @returns false if the caller should wait until the client has read. */
  send(data: Uint8Array): boolean {
    if (!this.#isClosing) this.#web?.send(data)
    return !this.#socket.writableNeedDrain
  }

  /**
   * Sends a ping and does not wait for the pong. If the client has disconnected, the connection
   * fails.
   */
  ping(): boolean {
    if (!this.#isClosing) this.#web?.ping()
    return !this.#socket.writableNeedDrain
  }

  close(code: number, reason: string): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#web?.close(code, Buffer.from(reason, 'utf8').subarray(0, REASON_BYTES_MAX))
    this.#socket.end()
    const timer = setTimeout(() => this.#socket.destroy(), eventLimits.eventLingerMs)
    this.#socket.once('close', () => clearTimeout(timer))
  }
}
