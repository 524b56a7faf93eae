import type { CircuitApplication, CircuitEndpoint } from '../circuits/circuit-endpoint.ts'
import { socketLimits } from './limits.ts'
import type { PayloadContent } from '../../channel/messages/payload.ts'

const { datagramBytesMax, datagramsUnsentBytesMax } = socketLimits

interface DatagramApplicationDeps {
  /** Sends one datagram to the peer; calls `onSent` after success or failure. */
  readonly transmit: (body: Uint8Array, onSent: () => void) => void
  /** Time without datagrams in both directions after which the circuit ends. */
  readonly idleMs: number
  /** Called once when the circuit is closed. */
  readonly onClosed: () => void
}

/**
 * A peer that exchanges datagrams, at one endpoint of a circuit; each payload is one datagram.
 * Datagrams that arrive while the circuit accepts none are dropped, as in a network. Datagrams have
 * no end of stream, so the circuit ends after an idle time.
 */
export class DatagramApplication implements CircuitApplication {
  readonly #deps: DatagramApplicationDeps
  readonly #idle: NodeJS.Timeout
  #end: CircuitEndpoint | null = null
  #isBlocked = false
  #isPeerWaiting = false
  #isClosed = false
  #unsentBytes = 0

  constructor(deps: DatagramApplicationDeps) {
    this.#deps = deps
    this.#idle = setTimeout(() => this.#end?.close('silent for too long'), deps.idleMs)
  }

  start(end: CircuitEndpoint): void {
    this.#end = end
    this.#idle.refresh()
  }

  /** @returns false if the datagram was dropped. */
  onDatagram(body: Uint8Array): boolean {
    if (this.#isClosed || this.#end === null || this.#isBlocked) return false
    this.#idle.refresh()
    this.#isBlocked = !this.#end.send({ body, edgeFlags: 0, traceId: null })
    return true
  }

  /** @param reason why the peer cannot be reached any more. */
  fail(reason: string): void {
    this.#end?.abort(reason)
  }

  deliver({ body }: PayloadContent): boolean {
    if (this.#isClosed || body.length === 0 || body.length > datagramBytesMax) return true
    this.#idle.refresh()
    this.#unsentBytes += body.length
    this.#deps.transmit(body, () => {
      this.#unsentBytes -= body.length
      if (!this.#isPeerWaiting || this.#unsentBytes > 0) return
      this.#isPeerWaiting = false
      this.#end?.resume()
    })
    this.#isPeerWaiting = this.#unsentBytes > datagramsUnsentBytesMax
    return !this.#isPeerWaiting
  }

  /** Does nothing, because the peer can still send to the other endpoint. */
  onFinished(): void {}

  onWritable(): void {
    this.#isBlocked = false
  }

  onClosed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#idle)
    this.#deps.onClosed()
  }
}
