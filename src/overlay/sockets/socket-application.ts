import type { Socket } from 'node:net'

import type { CircuitApplication, CircuitEndpoint } from '../circuits/circuit-endpoint.ts'
import { socketLimits } from './limits.ts'
import { resetSocket } from './reset-socket.ts'
import type { PayloadContent } from '../../channel/messages/payload.ts'

const { pieceBytesMax, flushMsMax, lingerMs } = socketLimits

const FIN = 1
const NONE = new Uint8Array()

/**
 * A stream socket at one endpoint of a circuit. The socket must have the option `allowHalfOpen`,
 * because each direction ends separately. At most one read of the socket is buffered: the socket is
 * paused while the circuit accepts no data, and the circuit waits while the socket accepts no data.
 */
export class SocketApplication implements CircuitApplication {
  readonly #socket: Socket
  #end: CircuitEndpoint | null = null
  /** Bytes from the socket that the circuit has not accepted yet. */
  #unsent: Uint8Array
  #isBlocked = false
  #isSending = false
  #hasReadAll = false
  #hasFinished = false
  #isClosed = false
  #fault: string | null = null
  /** Ends the circuit if it accepts none of the remaining data of a closed socket. */
  #deadline: NodeJS.Timeout | null = null

  /** @param first bytes that were already read from the socket. */
  constructor(socket: Socket, first: Uint8Array = NONE) {
    this.#socket = socket
    this.#unsent = first
    socket.on('error', (error) => (this.#fault ??= error.message))
    socket.on('close', () => this.#onSocketClosed())
  }

  /** Starts to transfer data in both directions. */
  start(end: CircuitEndpoint): void {
    this.#end = end
    const socket = this.#socket
    if (socket.destroyed) {
      this.#onSocketClosed()
      return
    }
    if (this.#isClosed) return
    // If the peer sends no data, its end of the stream can arrive before the circuit exists.
    this.#hasReadAll = socket.readableEnded
    socket.on('data', (chunk: Uint8Array) => {
      this.#unsent = chunk
      this.#send()
    })
    socket.on('end', () => {
      this.#hasReadAll = true
      this.#send()
    })
    socket.on('drain', () => end.resume())
    this.#send()
  }

  deliver({ body, edgeFlags }: PayloadContent): boolean {
    const socket = this.#socket
    if (this.#isClosed || socket.writableEnded || socket.destroyed) return true
    const isWritable = body.length === 0 || socket.write(body)
    if ((edgeFlags & FIN) === 0) return isWritable
    // The method returns true, because the socket emits no `drain` event after the end of the
    // stream.
    socket.end()
    return true
  }

  onFinished(): void {
    this.#socket.end()
  }

  onWritable(): void {
    this.#isBlocked = false
    this.#send()
  }

  /** Ends the connection to the peer after all delivered data, or with a reset if data was lost. */
  onClosed(_reason: string, isWhole: boolean): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#unsent = NONE
    if (this.#deadline !== null) clearTimeout(this.#deadline)
    const socket = this.#socket
    if (socket.destroyed) return
    if (!isWhole) {
      resetSocket(socket)
      return
    }
    socket.removeAllListeners('data')
    socket.pause()
    socket.setTimeout(flushMsMax, () => resetSocket(socket))
    socket.end(() => {
      // Reads and discards the remaining input: with unread bytes, closing the socket would cause a
      // reset, and the peer would lose data that it has not read.
      socket.resume()
      setTimeout(() => socket.destroy(), lingerMs).unref()
    })
  }

  #send(): void {
    const end = this.#end
    if (end === null || this.#isSending) return
    this.#isSending = true
    while (this.#unsent.length > 0 && !this.#isBlocked && !this.#isClosed) {
      const body = this.#unsent.subarray(0, pieceBytesMax)
      this.#unsent = this.#unsent.subarray(pieceBytesMax)
      this.#deadline?.refresh()
      this.#isBlocked = !end.send({ body, edgeFlags: 0, traceId: null })
    }
    this.#isSending = false
    if (this.#isClosed) return
    if (this.#isBlocked) this.#socket.pause()
    else if (!this.#hasReadAll) this.#socket.resume()
    else {
      this.#finish(end)
      if (this.#socket.destroyed) this.#onSocketClosed()
    }
  }

  /**
   * Sends the FIN flag and also ends the circuit's stream: some routers use the flag as the end of
   * the stream, others the end of the payloads.
   */
  #finish(end: CircuitEndpoint): void {
    if (this.#hasFinished) return
    this.#hasFinished = true
    end.send({ body: NONE, edgeFlags: FIN, traceId: null })
    end.finish()
  }

  #onSocketClosed(): void {
    const end = this.#end
    if (this.#isClosed || end === null) return
    // A socket that both sides have ended can close before the circuit has accepted all its data.
    if (this.#fault === null && this.#hasReadAll && !this.#hasFinished) {
      this.#deadline ??= setTimeout(() => {
        end.abort('the other end does not accept the remaining data')
      }, flushMsMax).unref()
      return
    }
    const reason = this.#fault ?? 'the socket is closed'
    if (this.#fault !== null || !this.#socket.writableFinished) end.abort(reason)
    else end.close(reason)
  }
}
