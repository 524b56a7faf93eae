import type { ChannelMessage, OutboundMessage } from '../channel/frame.ts'
import { FairShare } from '../lib/bounds/fair-share.ts'
import type { Clock } from '../lib/clock.ts'
import type {
  CircuitApplication,
  CircuitEndpoint,
  LocalCircuit,
} from '../overlay/circuits/circuit-endpoint.ts'
import { closedCircuitEndpoint } from '../overlay/circuits/closed-circuit-endpoint.ts'
import { Xgress } from '../overlay/circuits/xgress.ts'
import { xgressOptions } from '../overlay/circuits/xgress-options.ts'
import { circuitLimits } from '../overlay/circuits/limits.ts'
import { circuitContentType } from '../channel/messages/payload.ts'
import { tunnelLimits } from './limits.ts'

/** The edge router over which one circuit runs. */
export interface EdgeCircuitLink {
  /**
   * Key for fair sharing of the buffer: the service that this process dials, or the identity that
   * dials a service of this process.
   */
  readonly sharer: string
  /**
   * @returns false if the message was not sent; the caller should retry when `onceWritable` calls
   * back.
   */
  transmit(message: OutboundMessage, queuedBytesMax: number): boolean
  onceWritable(callback: () => void): void
  /** @param endsCircuit false if the edge router has ended the circuit or has disconnected. */
  onClosed(endsCircuit: boolean): void
}

/**
 * One endpoint of a circuit. Both endpoints are in this process if an identity dials a service that
 * this process hosts.
 */
export type CircuitEnd = Pick<LocalCircuit, 'id' | 'isTerminator'>

/** Key that identifies an endpoint among the endpoints of all circuits. */
export function circuitEndKey({ id, isTerminator }: CircuitEnd): string {
  return `${isTerminator ? 'host' : 'client'} ${id}`
}

interface Reserved {
  readonly end: CircuitEnd
  readonly path: EdgeCircuitLink
  readonly untilMs: number
}

interface Open {
  readonly path: EdgeCircuitLink
  readonly stream: Xgress
}

const { payloadsQueuedBytesMax, acknowledgementsQueuedBytesMax, ticksEveryMs } = circuitLimits
const { bufferedBytesMax, openedWithinMs } = tunnelLimits

/**
 * Circuit endpoints in this process; the other endpoint of each circuit is reached through an edge
 * router.
 */
export class EdgeCircuits {
  readonly #clock: Clock
  readonly #buffered = new FairShare(bufferedBytesMax)
  /** Endpoints of circuits that exist at an edge router and have not been opened here yet. */
  readonly #reserved = new Map<string, Reserved>()
  readonly #open = new Map<string, Open>()
  #receivedBytes = 0
  #sentBytes = 0
  #ticker: NodeJS.Timeout | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Number of open circuit endpoints, and bytes of payloads since the start. */
  get figures(): {
    readonly openCircuits: number
    readonly receivedBytes: number
    readonly sentBytes: number
  } {
    return {
      openCircuits: this.#open.size,
      receivedBytes: this.#receivedBytes,
      sentBytes: this.#sentBytes,
    }
  }

  /**
   * Reserves an endpoint of a circuit; the caller must open it next.
   * @returns false if the endpoint already exists.
   */
  reserve(end: CircuitEnd, path: EdgeCircuitLink): boolean {
    const key = circuitEndKey(end)
    // @guard edge-router-of-a-tunnel--taken
    if (this.#open.has(key) || this.#reserved.has(key)) return false
    const untilMs = this.#clock.monotonicMs() + openedWithinMs
    this.#reserved.set(key, { end, path, untilMs })
    this.#startTicker()
    return true
  }

  /** Ends a reserved circuit that was never opened. */
  abandon(end: CircuitEnd): void {
    const key = circuitEndKey(end)
    const reserved = this.#reserved.get(key)
    if (!this.#reserved.delete(key)) return
    reserved?.path.onClosed(true)
    this.#stopTicker()
  }

  open(place: LocalCircuit, application: CircuitApplication): CircuitEndpoint {
    const { id, isTerminator, options = xgressOptions() } = place
    const key = circuitEndKey(place)
    const reserved = this.#reserved.get(key)
    if (reserved === undefined) return closedCircuitEndpoint(id, application, 'the circuit is gone')
    this.#reserved.delete(key)
    const { path } = reserved
    const waker = (): void => {
      if (this.#open.get(key)?.stream === stream) stream.onLinkWritable()
    }
    const stream: Xgress = new Xgress({
      circuitId: id,
      isTerminator,
      options,
      application,
      clock: this.#clock,
      room: {
        hasRoom: () => this.#buffered.hasRoomFor(path.sharer),
        take: (bytes) => this.#buffered.take(path.sharer, bytes),
      },
      transmit: (message, kind) => {
        const bytesMax =
          kind === 'acknowledgement' ? acknowledgementsQueuedBytesMax : payloadsQueuedBytesMax
        if (path.transmit(message, bytesMax)) {
          if (message.contentType === circuitContentType.payload) {
            this.#sentBytes += message.body?.length ?? 0
          }
          return 'sent'
        }
        path.onceWritable(waker)
        return 'full'
      },
      onClosed: (_reason, endsCircuit) => {
        this.#open.delete(key)
        path.onClosed(endsCircuit)
        this.#stopTicker()
      },
    })
    this.#open.set(key, { path, stream })
    this.#startTicker()
    stream.start()
    return stream
  }

  /** Handles a circuit's frame from the edge router. */
  receive(end: CircuitEnd, message: ChannelMessage): void {
    const open = this.#open.get(circuitEndKey(end))
    if (open === undefined) return
    if (message.contentType === circuitContentType.payload)
      this.#receivedBytes += message.body.length
    open.stream.receive(message)
  }

  /**
   * Called when the edge router ended the circuit or disconnected. Data that was received earlier
   * is still delivered.
   */
  unrouted(end: CircuitEnd): void {
    const key = circuitEndKey(end)
    const reserved = this.#reserved.get(key)
    this.#reserved.delete(key)
    reserved?.path.onClosed(false)
    this.#open.get(key)?.stream.unrouted()
    this.#stopTicker()
  }

  /** Ends all circuits of this process. */
  stop(): void {
    for (const { end } of Array.from(this.#reserved.values())) this.abandon(end)
    for (const { stream } of Array.from(this.#open.values())) stream.end('the tunnel stops')
  }

  #startTicker(): void {
    this.#ticker ??= setInterval(() => {
      const nowMs = this.#clock.monotonicMs()
      for (const { stream } of Array.from(this.#open.values())) stream.tick(nowMs)
      for (const { end, untilMs } of Array.from(this.#reserved.values())) {
        if (nowMs >= untilMs) this.abandon(end)
      }
    }, ticksEveryMs)
  }

  #stopTicker(): void {
    if (this.#open.size + this.#reserved.size > 0 || this.#ticker === null) return
    clearInterval(this.#ticker)
    this.#ticker = null
  }
}
