import type { Application, CircuitEnd } from '../circuits/circuit-ends.ts'
import { socketLimits } from './limits.ts'
import type { Piece } from '../../channel/messages/payload.ts'

const { datagramBytesMax, datagramsUnsentBytesMax } = socketLimits

export interface DatagramApplicationParts {
  /** Sends one datagram to the peer; `onSent` is called when the system has taken it, or not. */
  readonly transmit: (body: Uint8Array, onSent: () => void) => void
  /** Silence in both directions after which the circuit ends. */
  readonly idleMs: number
  /** Called once: the circuit is closed. */
  readonly onClosed: () => void
}

/**
 * A datagram peer at one end of a circuit: a piece is a datagram. Datagrams that come while the
 * circuit takes no more are dropped, as a network does. It knows no half-close, and ends when
 * nothing comes or goes for a while.
 */
export class DatagramApplication implements Application {
  readonly #parts: DatagramApplicationParts
  readonly #idle: NodeJS.Timeout
  #end: CircuitEnd | null = null
  #isBlocked = false
  #isPeerWaiting = false
  #isClosed = false
  #unsentBytes = 0

  constructor(parts: DatagramApplicationParts) {
    this.#parts = parts
    this.#idle = setTimeout(() => this.#end?.close('silent for too long'), parts.idleMs)
  }

  start(end: CircuitEnd): void {
    this.#end = end
    this.#idle.refresh()
  }

  /** @returns false when it is dropped. */
  onDatagram(body: Uint8Array): boolean {
    if (this.#isClosed || this.#end === null || this.#isBlocked) return false
    this.#idle.refresh()
    this.#isBlocked = !this.#end.send({ body, edgeFlags: 0, traceId: null })
    return true
  }

  /** @param reason the peer is gone. */
  fail(reason: string): void {
    this.#end?.failWrite(reason)
    this.#end?.close(reason)
  }

  deliver({ body }: Piece): boolean {
    if (this.#isClosed || body.length === 0 || body.length > datagramBytesMax) return true
    this.#idle.refresh()
    this.#unsentBytes += body.length
    this.#parts.transmit(body, () => {
      this.#unsentBytes -= body.length
      if (!this.#isPeerWaiting || this.#unsentBytes > 0) return
      this.#isPeerWaiting = false
      this.#end?.resume()
    })
    this.#isPeerWaiting = this.#unsentBytes > datagramsUnsentBytesMax
    return !this.#isPeerWaiting
  }

  /** The other end may still be answered. */
  onFinished(): void {}

  onWritable(): void {
    this.#isBlocked = false
  }

  onClosed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#idle)
    this.#parts.onClosed()
  }
}
