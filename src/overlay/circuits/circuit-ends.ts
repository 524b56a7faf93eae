import type { DialError } from '../../channel/messages/dial-error.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { Piece } from '../../channel/messages/payload.ts'
import type { TraceAnswer, TraceRequest } from '../../channel/messages/route-trace.ts'
import type { XgressOptions } from './xgress-options.ts'

/** User of one end of a circuit: a socket, or a connection of an SDK. */
export interface CircuitApplication {
  /**
   * Receives pieces in order, each once.
   * @returns false: nothing more is delivered until `CircuitEnd.resume`.
   */
  deliver(piece: Piece): boolean
  /** The other end has finished sending; it can still receive. */
  onFinished(): void
  /** Called when there is space again after `send` returned false. */
  onWritable(): void
  /**
   * Called with the answer to `CircuitEnd.trace` as the far side sent it. The far side may send
   * answers unasked.
   */
  onTraced?(answer: TraceAnswer): void
  /**
   * Called once, as the last callback.
   * @param reason one clause.
   * @param isWhole false: data was lost in one of the directions, so the peer must not see a
   * regular end of the stream.
   */
  onClosed(reason: string, isWhole: boolean): void
}

/** One end of a circuit from the view of its application. Safe to use after it is closed. */
export interface CircuitEnd {
  readonly circuitId: string
  readonly isClosed: boolean
  /**
   * @returns false: the piece was accepted, but the caller must wait for `onWritable` before the
   * next one.
   */
  send(piece: Piece): boolean
  /** Finishes sending; the application can still receive. */
  finish(): void
  /**
   * The application cannot receive any more. The other end stops sending, and the circuit closes.
   */
  failWrite(reason: string): void
  /** Requests a hop of the route; the answer may be lost. Absent: not supported here. */
  trace?(request: TraceRequest): void
  /** Continues delivery after `deliver` returned false. */
  resume(): void
  /** Closes this end; sent payloads are still delivered. */
  close(reason: string): void
}

/** Destination for the frames of a circuit: a link, an end in this router, or an end in an SDK. */
export interface FrameDestination {
  /** Never waits. @returns false when the frame was dropped; the ends send it again. */
  forward(message: ChannelMessage): boolean
  /** Calls back once, in a later turn, when there is space after `forward` returned false. */
  onceWritable?(callback: () => void): void
  /** The circuit is not routed here any more; nothing is forwarded afterwards. */
  onUnrouted(): void
}

/** Ends of circuits at this router. */
export interface LocalCircuits {
  /** Opens this router's end of a circuit that a controller has created and routed. */
  open(circuit: LocalCircuit, application: CircuitApplication): CircuitEnd
  /** As `open`, for an end outside of this router; `leave` removes it. */
  attach(circuit: LocalCircuit, destination: FrameDestination): void
  /** Forwards a message from such an end into its circuit. */
  enter(circuit: LocalCircuit, message: ChannelMessage): void
  /** Removes such an end and reports that to the owner of the circuit. */
  leave(circuit: LocalCircuit, reason: string): void
}

export interface LocalCircuit {
  readonly id: string
  /** Name of this end, chosen by the controller. */
  readonly address: string
  /** The controller that created the circuit. */
  readonly owner: { readonly id: string }
  /** False at the end that requested the circuit. */
  readonly isTerminator: boolean
  /**
   * Identity that sends through this end, for fair scheduling: all ends of an identity take one
   * turn. Absent: this end takes its own turn.
   */
  readonly sharer?: string
  /** Options of its dialer or listener; absent: the defaults. */
  readonly options?: XgressOptions
}

/** Request of a controller to the last router of a circuit to connect to the terminator. */
export interface DialRequest {
  readonly circuit: LocalCircuit
  /**
   * Dialing identity, whose share of the resources is used; the id of the controller if it sends no
   * identity.
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
   * Opens or attaches the end of the circuit before it resolves, because the first payload may
   * follow the answer immediately.
   * @returns peer data for the answer.
   * @throws {DialFailure}
   */
  dial(request: DialRequest, signal: AbortSignal): Promise<ReadonlyMap<number, Uint8Array>>
}

/** The target of a terminator could not be reached; it has a code for controllers and clients. */
export class DialFailure extends Error {
  readonly code: DialError

  constructor(code: DialError, reason: string) {
    super(reason)
    this.code = code
  }
}
