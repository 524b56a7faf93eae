import type { CircuitRequestCodec, CircuitData } from '../circuits/circuit-source.ts'
import {
  tunnelCircuitRequestMessage,
  readCreatedCircuit,
} from '../../channel/messages/circuit-requests.ts'

/** The circuit request of a tunnel, with the function that reads the response. */
export function createTunnelCircuitCodec(service: string, wish: CircuitData): CircuitRequestCodec {
  return {
    message: tunnelCircuitRequestMessage(service, wish.instanceId, wish.peerData),
    read: (answer) => {
      const created = readCreatedCircuit(answer)
      if (typeof created === 'string') return created
      return wish.take(created, created.peerData) ?? created
    },
  }
}

/** Data for a circuit whose endpoints exchange nothing. */
export const emptyCircuitData: CircuitData = {
  instanceId: '',
  peerData: new Map(),
  take: () => null,
}
