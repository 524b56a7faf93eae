import { type WebSocket, WebSocketServer } from 'ws'

export type { WebSocket, WebSocketServer }

export interface WebSocketBounds {
  /** Maximum size of one message; a larger one closes the web socket. */
  readonly messageBytesMax: number
  /** Maximum fragments of one message. */
  readonly fragmentsMax: number
  /** Timeout for the peer to answer a close frame. */
  readonly closeMs: number
}

/**
 * The server side of WebSockets for one listener, without compression. The code that uses a
 * WebSocket must answer its pings, because only that code knows whether the peer reads.
 */
export function createWebSocketServer(bounds: WebSocketBounds): WebSocketServer {
  const { messageBytesMax, fragmentsMax, closeMs } = bounds
  const options = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: messageBytesMax,
    maxFragments: fragmentsMax,
    closeTimeout: closeMs,
  }
  return new WebSocketServer(options)
}
