import type { ChannelMessage, OutboundMessage } from '../../channel/frame.ts'
import type { LocalCircuit } from './circuit-endpoint.ts'

/**
 * No circuit could be created, for example because a controller or an edge router refused it, or
 * because none could be reached. The message is a clause for the client.
 */
export class CircuitUnavailableError extends Error {
  override readonly name = 'CircuitUnavailableError'
}

/** Data that the two endpoints of a circuit exchange when it is created. */
export interface CircuitData {
  /** Service instance to dial; '' for any. */
  readonly instanceId: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
  /**
   * Receives the data of the other endpoint.
   * @returns the reason to reject the circuit; null to open it.
   */
  readonly take: (
    circuit: { readonly id: string },
    peerData: ReadonlyMap<number, Uint8Array>,
  ) => string | null
}

/** Requests circuits for connections that listeners have accepted. */
export interface CircuitSource {
  /**
   * @param service name of the service, or its ID; tunnels without a router accept only the name.
   * @param circuitData data to exchange with the other endpoint; absent: none.
   * @throws {CircuitUnavailableError}
   */
  request(
    service: string,
    client: string,
    timeoutMs: number,
    circuitData?: CircuitData,
  ): Promise<LocalCircuit>
}

/**
 * A request for a circuit, as one of the message types that controllers accept, with the function
 * that reads the response.
 */
export interface CircuitRequestCodec {
  readonly message: OutboundMessage
  /** @returns the circuit, or why there is none. */
  readonly read: (
    answer: ChannelMessage,
  ) => { readonly id: string; readonly address: string } | string
}
