import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'

import { eventLimits } from '../limits.ts'

const REASON_BYTES_MAX = 123

export const closeCode = { normal: 1000, goingAway: 1001, protocol: 1002 } as const

export interface EventSocketHandlers {
  readonly onMessage: (data: Buffer) => void
  readonly onDrain: () => void
  /** Called once, however it ended. */
  readonly onClose: () => void
}

/** A request for a web socket, as Node's server hands it over. */
export interface Upgrade {
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** Bytes that its client has sent already. */
  readonly head: Buffer
}

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  autoPong: false,
  maxPayload: eventLimits.webSocketMessageBytesMax,
})

/**
 * The server's end of a web socket, as far as the management channel uses it: binary messages
 * without extensions. Anything larger than a request may be, or against RFC 6455, closes it.
 */
export class EventSocket {
  readonly #socket: Duplex
  #web: WebSocket | null = null
  #isClosing = false

  constructor({ request, socket, head }: Upgrade, handlers: EventSocketHandlers) {
    this.#socket = socket
    server.handleUpgrade(request, socket, head, (web) => this.#begin(web, handlers))
    // Its client has gone in between.
    if (this.#web === null) setImmediate(handlers.onClose)
  }

  #begin(web: WebSocket, handlers: EventSocketHandlers): void {
    this.#web = web
    web.on('message', (data, isBinary) => {
      if (this.#isClosing) return
      if (isBinary) handlers.onMessage(data as Buffer)
      else this.close(closeCode.protocol, 'only binary messages are taken')
    })
    // A client that reads no answers is sent none.
    web.on('ping', (data) => {
      // @guard pings-without-reading
      if (!this.#socket.writableNeedDrain) web.pong(data)
    })
    web.on('error', () => this.close(closeCode.protocol, ''))
    web.once('close', handlers.onClose)
    this.#socket.on('drain', handlers.onDrain)
  }

  /** @returns false when the client should read first. */
  send(data: Uint8Array): boolean {
    if (!this.#isClosing) this.#web?.send(data)
    return !this.#socket.writableNeedDrain
  }

  /** No pong is awaited: a failure of the connection shows that the client has gone. */
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
