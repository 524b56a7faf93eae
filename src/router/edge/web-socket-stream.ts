import { Duplex } from 'node:stream'

import type { Clock } from '../../lib/clock.ts'
import type { WebSocket } from '../../lib/runtime/web-sockets.ts'

export interface WebSocketStreamDeps {
  /** An open web socket. The stream closes it. */
  readonly web: WebSocket
  /** The connection over which the web socket runs. */
  readonly connection: Pick<Duplex, 'writableNeedDrain'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly pingEveryMs: number
  /**
   * Maximum time in which nothing arrives from the client, also no pong, and no write to it
   * completes; after that, the web socket is closed.
   */
  readonly pongMsMax: number
}

/** RFC 6455: the endpoint cannot accept this type of data. */
const UNSUPPORTED_DATA_CLOSE_CODE = 1003
const NORMAL_CLOSE_CODE = 1000

/** Bytes before the content of a TLS record; the last two are its length. */
const RECORD_HEAD_BYTES = 5

/**
 * The TLS stream within a web socket, which consists of the content of the binary messages. The
 * boundaries of received messages have no meaning. Each sent message is one TLS record, because
 * BrowZer decrypts one record for each message. While its consumer is slow, the stream reads no
 * further message. It accepts the next chunk to send when the connection has accepted the previous
 * one.
 */
export class WebSocketStream extends Duplex {
  readonly #deps: WebSocketStreamDeps
  readonly #timer: NodeJS.Timeout
  /** Time at which the client last sent anything, including a pong, or a write to it completed. */
  #aliveMs: number
  #isRefused = false
  /** The beginning of a TLS record, until its end is written. */
  #begun: Buffer = Buffer.alloc(0)

  constructor(deps: WebSocketStreamDeps) {
    super({ allowHalfOpen: false })
    this.#deps = deps
    this.#aliveMs = deps.clock.monotonicMs()
    const { web, connection, pingEveryMs, pongMsMax } = deps
    web.on('message', (data, isBinary) => this.#onMessage(data as Buffer, isBinary))
    web.on('ping', (data) => {
      this.#sawLife()
      // @guard web-sockets-of-clients--pings
      if (!connection.writableNeedDrain) web.pong(data)
    })
    web.on('pong', () => this.#sawLife())
    // Without a listener, an error would end the process; the web socket closes itself when the
    // peer violates the protocol.
    web.on('error', () => undefined)
    web.once('close', () => this.#onClosed())
    // Each web socket has its own timer: the shared scheduler would send pings to all clients in
    // the same turn of the event loop.
    this.#timer = setInterval(() => this.#check(), Math.min(pingEveryMs, pongMsMax))
  }

  override _read(): void {
    const { web } = this.#deps
    if (!web.isPaused) return
    // While reading was paused, nothing could arrive, so the time without a message starts here.
    this.#sawLife()
    web.resume()
  }

  override _write(chunk: Buffer, _encoding: string, callback: () => void): void {
    let left = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk])
    const records: Buffer[] = []
    for (let bytes = recordBytes(left); bytes <= left.length; bytes = recordBytes(left)) {
      records.push(left.subarray(0, bytes))
      left = left.subarray(bytes)
    }
    // Copies the bytes, so that the buffer does not keep earlier records in memory.
    this.#begun = Buffer.from(left)
    const last = records.pop()
    for (const record of records) this.#send(record, () => undefined)
    if (last === undefined) callback()
    else this.#send(last, callback)
  }

  override _final(callback: () => void): void {
    this.#deps.web.close(NORMAL_CLOSE_CODE)
    callback()
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    clearInterval(this.#timer)
    this.#deps.web.terminate()
    callback(error)
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    if (this.#isRefused || this.destroyed) return
    // @guard web-sockets-of-clients--text
    if (!isBinary) {
      this.#isRefused = true
      this.#deps.web.close(UNSUPPORTED_DATA_CLOSE_CODE, 'only binary messages are accepted')
      return
    }
    this.#sawLife()
    // @guard web-sockets-of-clients--reading
    if (!this.push(data)) this.#deps.web.pause()
  }

  /** Ignores a failed write: the web socket is then closing, which ends the stream. */
  #send(chunk: Buffer, callback: () => void): void {
    // @guard web-sockets-of-clients--writing
    this.#deps.web.send(chunk, { binary: true }, (error) => {
      if (error === undefined || error === null) this.#sawLife()
      callback()
    })
  }

  #sawLife(): void {
    this.#aliveMs = this.#deps.clock.monotonicMs()
  }

  #onClosed(): void {
    clearInterval(this.#timer)
    if (!this.destroyed) this.push(null)
  }

  /**
   * Closes a silent web socket, and sends a ping. The ping also prevents a proxy between client and
   * router from closing an idle connection.
   */
  #check(): void {
    const { web, connection, clock, pongMsMax } = this.#deps
    const isSilent = !web.isPaused && clock.monotonicMs() - this.#aliveMs > pongMsMax
    // @guard web-sockets-of-clients--silent
    if (isSilent) this.destroy()
    else if (!connection.writableNeedDrain) web.ping()
  }
}

/** Length of a TLS record; Infinity while its header is incomplete. */
function recordBytes(bytes: Buffer): number {
  if (bytes.length < RECORD_HEAD_BYTES) return Infinity
  return RECORD_HEAD_BYTES + bytes.readUInt16BE(RECORD_HEAD_BYTES - 2)
}
