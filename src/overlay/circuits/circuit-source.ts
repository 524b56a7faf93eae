import type { ChannelMessage, OutboundMessage } from '../../channel/frame.ts'
import type { LocalCircuit } from './circuit-endpoint.ts'

/**
 * A controller refused the circuit, or none was reachable; the message is one clause for the
 * client.
 */
export class CircuitUnavailableError extends Error {
  override readonly name = 'CircuitUnavailable'
}

/** Data that the two endpoints of a circuit exchange when it is created. */
export interface CircuitData {
  /** Service instance to dial; '' for any. */
  readonly instanceId: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
  /**
   * Receives the data of the other endpoint.
   * @returns a reason to reject the circuit, or null to open it.
   */
  readonly take: (
    circuit: { readonly id: string },
    peerData: ReadonlyMap<number, Uint8Array>,
  ) => string | null
}

/** Requests circuits for the listeners of clients. */
export interface CircuitSource {
  /**
   * @param service ID or name of the service.
   * @param circuitData data for the other endpoint of this circuit; absent: none.
   * @throws {CircuitUnavailableError}
   */
  request(
    service: string,
    client: string,
    timeoutMs: number,
    circuitData?: CircuitData,
  ): Promise<LocalCircuit>
}

/** One form of circuit request to a controller. */
export interface CircuitRequestCodec {
  readonly message: OutboundMessage
  /** @returns the circuit, or a message that explains why there is none. */
  readonly read: (
    answer: ChannelMessage,
  ) => { readonly id: string; readonly address: string } | string
}
