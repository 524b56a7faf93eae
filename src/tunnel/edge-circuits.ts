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
  /** The service, or the identity that dials it; the buffer is divided fairly among these. */
  readonly sharer: string
  /**
   * @returns false if the message was not sent; `onceWritable` then calls back when the caller
   * should retry.
   */
  transmit(message: OutboundMessage, queuedBytesMax: number): boolean
  onceWritable(callback: () => void): void
  /** @param endsCircuit false if the edge router has already ended the circuit. */
  onClosed(circuitId: string, endsCircuit: boolean): void
}

interface Reserved {
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
  /** Circuits that exist at an edge router and have not been opened here yet. */
  readonly #reserved = new Map<string, Reserved>()
  readonly #open = new Map<string, Open>()
  #receivedBytes = 0
  #sentBytes = 0
  #ticker: NodeJS.Timeout | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Open circuits, and the bytes of payloads since the start. */
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
   * Reserves a circuit; the caller must open it next.
   * @returns false if the circuit already exists.
   */
  reserve(circuitId: string, path: EdgeCircuitLink): boolean {
    // @guard edge-router-of-a-tunnel--taken
    if (this.#open.has(circuitId) || this.#reserved.has(circuitId)) return false
    const untilMs = this.#clock.monotonicMs() + openedWithinMs
    this.#reserved.set(circuitId, { path, untilMs })
    this.#startTicker()
    return true
  }

  /** Ends a reserved circuit that was never opened. */
  abandon(circuitId: string): void {
    const reserved = this.#reserved.get(circuitId)
    if (!this.#reserved.delete(circuitId)) return
    reserved?.path.onClosed(circuitId, true)
    this.#stopTicker()
  }

  open(place: LocalCircuit, application: CircuitApplication): CircuitEndpoint {
    const { id, isTerminator, options = xgressOptions() } = place
    const reserved = this.#reserved.get(id)
    if (reserved === undefined) return closedCircuitEndpoint(id, application, 'the circuit is gone')
    this.#reserved.delete(id)
    const { path } = reserved
    const waker = (): void => {
      if (this.#open.get(id)?.stream === stream) stream.onLinkWritable()
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
        this.#open.delete(id)
        path.onClosed(id, endsCircuit)
        this.#stopTicker()
      },
    })
    this.#open.set(id, { path, stream })
    this.#startTicker()
    stream.start()
    return stream
  }

  /** Handles a frame that the edge router sent for a circuit. */
  receive(circuitId: string, message: ChannelMessage): void {
    const open = this.#open.get(circuitId)
    if (open === undefined) return
    if (message.contentType === circuitContentType.payload)
      this.#receivedBytes += message.body.length
    open.stream.receive(message)
  }

  /**
   * Called when the edge router ended the circuit or disconnected. Data that was received before is
   * still delivered.
   */
  unrouted(circuitId: string): void {
    const reserved = this.#reserved.get(circuitId)
    this.#reserved.delete(circuitId)
    reserved?.path.onClosed(circuitId, false)
    this.#open.get(circuitId)?.stream.unrouted()
    this.#stopTicker()
  }

  /** Ends all circuits. */
  stop(): void {
    for (const id of Array.from(this.#reserved.keys())) this.abandon(id)
    for (const { stream } of Array.from(this.#open.values())) stream.end('the tunnel stops')
  }

  #startTicker(): void {
    this.#ticker ??= setInterval(() => {
      const nowMs = this.#clock.monotonicMs()
      for (const { stream } of Array.from(this.#open.values())) stream.tick(nowMs)
      for (const [id, { untilMs }] of Array.from(this.#reserved)) {
        if (nowMs >= untilMs) this.abandon(id)
      }
    }, ticksEveryMs)
  }

  #stopTicker(): void {
    if (this.#open.size + this.#reserved.size > 0 || this.#ticker === null) return
    clearInterval(this.#ticker)
    this.#ticker = null
  }
}
