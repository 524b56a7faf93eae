import type { ChannelMessage, Outgoing } from '../../channel/frame.ts'
import type { LocalCircuit } from './circuit-ends.ts'

/** A controller has refused the circuit, or none could be asked: one clause for the client. */
export class CircuitUnavailable extends Error {
  override readonly name = 'CircuitUnavailable'
}

/** Facts that the ends of a circuit are to know of each other. */
export interface CircuitWish {
  /** Instance of the service that is dialed; '' for any. */
  readonly instanceId: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
  /**
   * Takes what the other end has said.
   * @returns why the circuit is of no use; null: it is opened next.
   */
  readonly take: (
    circuit: { readonly id: string },
    peerData: ReadonlyMap<number, Uint8Array>,
  ) => string | null
}

/** Gives the listeners of clients their circuits. */
export interface CircuitSource {
  /**
   * @param service its id or name.
   * @param wish of this circuit; absent: none.
   * @throws {CircuitUnavailable}
   */
  request(
    service: string,
    client: string,
    timeoutMs: number,
    wish?: CircuitWish,
  ): Promise<LocalCircuit>
}

/** One way to ask a controller for a circuit. */
export interface CircuitExchange {
  readonly message: Outgoing
  /** @returns why there is no circuit, as a text. */
  readonly read: (
    answer: ChannelMessage,
  ) => { readonly id: string; readonly address: string } | string
}
