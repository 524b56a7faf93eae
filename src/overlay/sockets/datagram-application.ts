import type { CircuitApplication, CircuitEndpoint } from '../circuits/circuit-endpoint.ts'
import { socketLimits } from './limits.ts'
import type { PayloadContent } from '../../channel/messages/payload.ts'

const { datagramBytesMax, datagramsUnsentBytesMax } = socketLimits

interface DatagramApplicationDeps {
  /** Sends one datagram to the peer; calls `onSent` after success or failure. */
  readonly transmit: (body: Uint8Array, onSent: () => void) => void
  /** Idle time in both directions after which the circuit ends. */
  readonly idleMs: number
  /** Called once when the circuit is closed. */
  readonly onClosed: () => void
}

/**
 * A datagram peer at one endpoint of a circuit; each piece is one datagram. Datagrams that arrive
 * while the circuit is blocked are dropped, as in a network. There is no half-close; the circuit
 * ends after an idle time.
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

  /** @returns false when the datagram was dropped. */
  onDatagram(body: Uint8Array): boolean {
    if (this.#isClosed || this.#end === null || this.#isBlocked) return false
    this.#idle.refresh()
    this.#isBlocked = !this.#end.send({ body, edgeFlags: 0, traceId: null })
    return true
  }

  /** @param reason why the peer is gone. */
  fail(reason: string): void {
    this.#end?.failWrite(reason)
    this.#end?.close(reason)
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
