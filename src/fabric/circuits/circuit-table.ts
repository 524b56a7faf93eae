import type { LiveFact } from '../../ports/live-facts.ts'
import type { LiveCircuit } from '../../ports/live-circuits.ts'
import { routerLimits } from '../limits.ts'
import { LiveRows } from '../live-rows.ts'
import type { CircuitPath } from './path.ts'
import { type CircuitEnds, unrouteMessage } from './route.ts'

/** A circuit as the controller keeps it that has laid it. */
export interface Circuit {
  readonly live: Omit<LiveCircuit, 'id' | 'routerIds' | 'linkIds'>
  readonly ends: CircuitEnds
  readonly hostId: string
  readonly instanceId: string
  /** The tunnel of the first router has dialed it. */
  readonly isOfTunnel: boolean
  /** The tunnel of the last router, which is `hostId`, hosts it. */
  readonly isHostedByTunnel: boolean
  path: CircuitPath
}

export type CircuitTable = LiveRows<Circuit, LiveCircuit>

/**
 * @param tell sends a message to a router, where it is connected.
 * @param onEnded told of each that has ended.
 */
export function circuitTable(
  owner: string,
  tell: (routerId: string, message: ReturnType<typeof unrouteMessage>) => void,
  onEnded: (circuit: Circuit) => void = () => undefined,
): CircuitTable {
  return new LiveRows({
    owner,
    rowsMax: routerLimits.circuitsMax,
    viewOf: circuitView,
    onRemoved: (circuit, isImmediate) => {
      const { ends, path } = circuit
      onEnded(circuit)
      for (const routerId of path.routerIds) tell(routerId, unrouteMessage(ends.id, isImmediate))
    },
  })
}

/** A circuit as others see it. */
export function circuitView({ live, ends, path }: Circuit): LiveCircuit {
  return {
    ...live,
    id: ends.id,
    routerIds: path.routerIds,
    linkIds: path.links.map(({ id }) => id),
  }
}

/** What events tell of a circuit. */
export function circuitFact(
  circuit: Circuit,
  type: 'created' | 'pathUpdated' | 'deleted',
  layMs?: number,
): LiveFact {
  const { hostId, instanceId, path } = circuit
  return {
    kind: 'circuit',
    type,
    circuit: circuitView(circuit),
    cost: path.cost,
    hostId,
    instanceId,
    ...(layMs === undefined ? {} : { layMs }),
  }
}
