import type { DialError } from '../../channel/messages/dial-error.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { Piece } from '../../channel/messages/payload.ts'
import type { TraceAnswer, TraceRequest } from '../../channel/messages/route-trace.ts'
import type { XgressOptions } from './xgress-options.ts'

/** User of one end of a circuit: a socket, or a connection of an SDK. */
export interface Application {
  /**
   * Pieces come in order, each once.
   * @returns false: nothing more is delivered until `CircuitEnd.resume`.
   */
  deliver(piece: Piece): boolean
  /** The other end writes no more; it may be written to still. */
  onFinished(): void
  /** After `send` has returned false: there is room again. */
  onWritable(): void
  /** The answer to `CircuitEnd.trace`, or to nothing: it is as the far side says. */
  onTraced?(answer: TraceAnswer): void
  /**
   * Called once, last.
   * @param reason one clause.
   * @param isWhole false: something was lost in one of the directions, so that the peer must not
   * take the end for that of the stream.
   */
  onClosed(reason: string, isWhole: boolean): void
}

/** One end of a circuit, as its application uses it. Safe to use after it is closed. */
export interface CircuitEnd {
  readonly circuitId: string
  readonly isClosed: boolean
  /** @returns false: it was taken, and nothing more is to come until `onWritable`. */
  send(piece: Piece): boolean
  /** The application writes no more, and reads on. */
  finish(): void
  /** The application takes no more: the other end stops sending, and the circuit closes. */
  failWrite(reason: string): void
  /** Asks for a hop of the route; the answer may be lost. Absent: it cannot be asked here. */
  trace?(request: TraceRequest): void
  /** After `deliver` has returned false: the application takes more. */
  resume(): void
  /** Payloads that were sent still arrive. */
  close(reason: string): void
}

/** Target of the frames of a circuit: a link, an end in this router, or an end in an SDK. */
export interface Destination {
  /** Never waits. @returns false when it is dropped: the ends send it again. */
  forward(message: ChannelMessage): boolean
  /** After `forward` has returned false: calls it once, in a later turn, when there is room. */
  onceWritable?(callback: () => void): void
  /** The circuit is no longer routed here; nothing is forwarded after it. */
  onUnrouted(): void
}

/** Ends of circuits at this router. */
export interface LocalCircuits {
  /** Opens this router's end of a circuit that a controller has created and routed. */
  open(circuit: LocalCircuit, application: Application): CircuitEnd
  /** The same for an end that is kept elsewhere; `leave` ends it. */
  attach(circuit: LocalCircuit, destination: Destination): void
  /** Forwards what such a destination sends into its circuit. */
  enter(circuit: LocalCircuit, message: ChannelMessage): void
  /** Such a destination is gone: the owner of the circuit is told. */
  leave(circuit: LocalCircuit, reason: string): void
}

export interface LocalCircuit {
  readonly id: string
  /** Name of this end, chosen by the controller. */
  readonly address: string
  /** The controller that has created it. */
  readonly owner: { readonly id: string }
  /** False at the end that asked for the circuit. */
  readonly isTerminator: boolean
  /** The identity that sends by it: all that it sends has one turn. Absent: it has one alone. */
  readonly sharer?: string
  /** Options of its dialer or listener; absent: the defaults. */
  readonly options?: XgressOptions
}

/** Request of a controller to the last router of a circuit: reach the terminator. */
export interface DialRequest {
  readonly circuit: LocalCircuit
  /** The identity that dials, which shares what dials use; or a controller that names none. */
  readonly dialedBy: string
  /** Address of the terminator. */
  readonly destination: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
  readonly timeoutMs: number
}

/** Reaches the terminators of one binding. */
export interface TerminatorDialer {
  /**
   * Opens or attaches the end of the circuit before it resolves: the first payload may follow the
   * answer at once.
   * @returns peer data for the answer.
   * @throws {DialFailure}
   */
  dial(request: DialRequest, signal: AbortSignal): Promise<ReadonlyMap<number, Uint8Array>>
}

export class DialFailure extends Error {
  readonly code: DialError

  constructor(code: DialError, reason: string) {
    super(reason)
    this.code = code
  }
}
