import type { CircuitExchange, CircuitData } from '../circuits/circuit-source.ts'
import {
  createTunnelCircuitMessage,
  readCreatedCircuit,
} from '../../channel/messages/circuit-requests.ts'

/** How a tunnel asks controllers for a circuit. */
export function tunnelCircuitExchange(service: string, wish: CircuitData): CircuitExchange {
  return {
    message: createTunnelCircuitMessage(service, wish.instanceId, wish.peerData),
    read: (answer) => {
      const created = readCreatedCircuit(answer)
      if (typeof created === 'string') return created
      return wish.take(created, created.peerData) ?? created
    },
  }
}

/** One that asks for nothing of the other end. */
export const emptyCircuitData: CircuitData = {
  instanceId: '',
  peerData: new Map(),
  take: () => null,
}
