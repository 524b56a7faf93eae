import type { DialErrorCode } from '../../channel/messages/dial-error.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { PayloadContent } from '../../channel/messages/payload.ts'
import type { TraceResponse, TraceRequest } from '../../channel/messages/route-trace.ts'
import type { XgressOptions } from './xgress-options.ts'

/** User of one circuit endpoint: a socket, or a connection of an SDK. */
export interface CircuitApplication {
  /**
   * Receives pieces in order, each once.
   * @returns false: nothing more is delivered until `CircuitEndpoint.resume`.
   */
  deliver(piece: PayloadContent): boolean
  /** The other endpoint has finished sending; it can still receive. */
  onFinished(): void
  /** Called when there is space again after `send` returned false. */
  onWritable(): void
  /**
   * Called with the response to `CircuitEndpoint.trace` as the far side sent it. The far side may
   * send responses without a request.
   */
  onTraced?(answer: TraceResponse): void
  /**
   * Called once, as the last callback.
   * @param reason why the circuit has closed, as one clause.
   * @param isWhole false: data was lost in one of the directions, so the stream to the peer must
   * not end regularly.
   */
  onClosed(reason: string, isWhole: boolean): void
}

/** One endpoint of a circuit from the view of its application. Safe to use after it is closed. */
export interface CircuitEndpoint {
  readonly circuitId: string
  readonly isClosed: boolean
  /**
   * @returns false: the piece was accepted, but the caller must wait for `onWritable` before the
   * next one.
   */
  send(piece: PayloadContent): boolean
  /** Finishes sending; the application can still receive. */
  finish(): void
  /**
   * The application cannot receive any more. The other endpoint stops sending, and the circuit
   * closes.
   */
  failWrite(reason: string): void
  /** Requests a hop of the route; the response may be lost. Absent: not supported here. */
  trace?(request: TraceRequest): void
  /** Continues delivery after `deliver` returned false. */
  resume(): void
  /** Closes this endpoint; sent payloads are still delivered. */
  close(reason: string): void
}

/**
 * Destination for the frames of a circuit: a link, a circuit endpoint in this router, or one in an
 * SDK.
 */
export interface FrameDestination {
  /**
   * Never waits.
   * @returns false when the frame was dropped; the circuit endpoints resend it.
   */
  forward(message: ChannelMessage): boolean
  /** Calls back once, in a later turn, when there is space after `forward` returned false. */
  onceWritable?(callback: () => void): void
  /** The circuit is not routed here any more; nothing is forwarded afterwards. */
  onUnrouted(): void
}

/** Circuit endpoints at this router. */
export interface LocalCircuits {
  /** Opens this router's endpoint of a circuit that a controller has created and routed. */
  open(circuit: LocalCircuit, application: CircuitApplication): CircuitEndpoint
  /** As `open`, for a circuit endpoint outside of this router; `leave` removes it. */
  attach(circuit: LocalCircuit, destination: FrameDestination): void
  /** Forwards a message from an attached endpoint into its circuit. */
  enter(circuit: LocalCircuit, message: ChannelMessage): void
  /** Removes an attached endpoint and reports the removal to the owner of the circuit. */
  leave(circuit: LocalCircuit, reason: string): void
}

export interface LocalCircuit {
  readonly id: string
  /** Name of this endpoint, chosen by the controller. */
  readonly address: string
  /** The controller that created the circuit. */
  readonly owner: { readonly id: string }
  /** False at the endpoint that requested the circuit. */
  readonly isTerminator: boolean
  /**
   * Identity that sends through this endpoint, for fair scheduling: all endpoints of an identity
   * share one turn. Absent: this endpoint has its own turn.
   */
  readonly sharer?: string
  /**
   * Options of the dialer or listener that opened this circuit endpoint; absent: the defaults.
   */
  readonly options?: XgressOptions
}

/** Request of a controller to the last router of a circuit to connect to the terminator. */
export interface DialRequest {
  readonly circuit: LocalCircuit
  /**
   * Dialing identity, whose share of the resources the dial uses; the id of the controller if the
   * controller sends no identity.
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
   * Opens or attaches the circuit endpoint before the promise resolves, because the first payload
   * may follow the response immediately.
   * @returns peer data for the response.
   * @throws {DialFailure}
   */
  dial(request: DialRequest, signal: AbortSignal): Promise<ReadonlyMap<number, Uint8Array>>
}

/**
 * The target of a terminator could not be reached; the error has a code for controllers and
 * clients.
 */
export class DialFailure extends Error {
  readonly code: DialErrorCode

  constructor(code: DialErrorCode, reason: string) {
    super(reason)
    this.code = code
  }
}
