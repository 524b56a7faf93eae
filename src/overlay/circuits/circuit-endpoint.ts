import type { DialErrorCode } from '../../channel/messages/dial-error.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { PayloadContent } from '../../channel/messages/payload.ts'
import type { TraceResponse, TraceRequest } from '../../channel/messages/route-trace.ts'
import type { XgressOptions } from './xgress-options.ts'

/**
 * The user of one circuit endpoint: a socket, or a connection of an SDK. It sends and receives
 * pieces: contents of payloads, whose boundaries stay unchanged.
 */
export interface CircuitApplication {
  /**
   * Receives pieces in order, each once.
   * @returns false if the endpoint must deliver nothing more until the application calls
   * `CircuitEndpoint.resume`.
   */
  deliver(piece: PayloadContent): boolean
  /** Called when the other endpoint has finished sending; it can still receive. */
  onFinished(): void
  /** Called when the endpoint accepts pieces again after `send` returned false. */
  onWritable(): void
  /**
   * Called with a response to `CircuitEndpoint.trace`, unchanged. The other endpoint may send
   * responses without a request.
   */
  onTraced?(answer: TraceResponse): void
  /**
   * Called once, as the last callback.
   * @param reason why the circuit has closed, as a clause for a message.
   * @param isWhole false: data of one of the directions may be missing, so the application must not
   * report a regular end of the stream to its peer.
   */
  onClosed(reason: string, isWhole: boolean): void
}

/** One endpoint of a circuit, as its application uses it. Calls after its end have no effect. */
export interface CircuitEndpoint {
  readonly circuitId: string
  readonly isClosed: boolean
  /**
   * Sends a piece. It is accepted, except after `finish` and when the other endpoint accepts no
   * more data.
   * @returns false if the application must wait for `onWritable` before it sends the next piece.
   */
  send(piece: PayloadContent): boolean
  /** Ends the application's stream; the application can still receive. */
  finish(): void
  /**
   * Closes this endpoint because the application has failed. The other application still receives
   * the pieces that were sent before, and then learns that data may be missing. Endpoints of
   * OpenZiti report a regular end of the stream instead.
   */
  abort(reason: string): void
  /**
   * Sends a request for a route trace to a hop; the response may be lost. Absent if the endpoint
   * does not support traces.
   */
  trace?(request: TraceRequest): void
  /** Continues to deliver pieces after `deliver` returned false. */
  resume(): void
  /** Closes this endpoint; pieces that were sent before are still delivered. */
  close(reason: string): void
}

/** Circuit endpoint that receives the frames of a circuit: in this router, or in an SDK. */
export interface FrameDestination {
  /**
   * Forwards a frame without waiting.
   * @returns false if the frame was dropped; the circuit endpoints retransmit it.
   */
  forward(message: ChannelMessage): boolean
  /**
   * Calls the callback once, in a later turn of the event loop, when `forward` can succeed again
   * after it returned false.
   */
  onceWritable?(callback: () => void): void
  /**
   * Called when this router no longer has a route for the circuit; no further frame is forwarded.
   */
  onUnrouted(): void
}

/** Circuit endpoints at this router. */
export interface LocalCircuits {
  /**
   * Opens an endpoint, in this process, of a circuit that a controller has created. If that is not
   * possible, the returned endpoint is closed.
   */
  open(circuit: LocalCircuit, application: CircuitApplication): CircuitEndpoint
  /**
   * Registers a circuit endpoint outside of this router, for example in a client; `leave` removes
   * it.
   */
  attach(circuit: LocalCircuit, destination: FrameDestination): void
  /** Forwards a message from an attached endpoint into its circuit. */
  enter(circuit: LocalCircuit, message: ChannelMessage): void
  /**
   * Removes an endpoint that was registered with `attach`, and reports this to the owner of the
   * circuit.
   */
  leave(circuit: LocalCircuit, reason: string): void
}

export interface LocalCircuit {
  readonly id: string
  /** Address of this endpoint, chosen by the controller. */
  readonly address: string
  /** The controller that owned the circuit when this endpoint was created. */
  readonly owner: { readonly id: string }
  /** False at the endpoint that requested the circuit. */
  readonly isTerminator: boolean
  /**
   * Identity that sends through this endpoint; all endpoints of an identity count as one in fair
   * scheduling. Absent: this endpoint counts separately.
   */
  readonly sharer?: string
  /**
   * Options of the dialer or listener that opened this circuit endpoint; absent: the defaults.
   */
  readonly options?: XgressOptions
}

/**
 * A request to connect to the terminator of a circuit. A controller sends it to the last router of
 * the circuit, or an edge router to the client that hosts the service.
 */
export interface DialRequest {
  readonly circuit: LocalCircuit
  /**
   * Key of the dialing identity, whose share of the resources the dial uses; if a controller sends
   * no identity, the key of the controller.
   */
  readonly dialedBy: string
  /** Address of the terminator. */
  readonly destination: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
  readonly timeoutMs: number
}

/** Connects to the terminators of one binding. */
export interface TerminatorDialer {
  /**
   * Connects to the terminator. Opens or attaches the circuit endpoint before the promise resolves,
   * because the first payload may follow the response immediately.
   * @returns peer data for the response.
   * @throws {DialFailure}
   */
  dial(request: DialRequest, signal: AbortSignal): Promise<ReadonlyMap<number, Uint8Array>>
}

/**
 * A terminator could not be dialed. The error has a code that controllers and clients understand.
 */
export class DialFailure extends Error {
  readonly code: DialErrorCode

  constructor(code: DialErrorCode, reason: string) {
    super(reason)
    this.code = code
  }
}
