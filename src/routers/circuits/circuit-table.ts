import type { LiveCircuit } from '../../ports/live-circuits.ts'
import { routerLimits } from '../limits.ts'
import { LiveRows } from '../live-rows.ts'
import type { CircuitPath } from './path.ts'
import { unrouteMessage } from './route.ts'
import type { CircuitEnds } from './route.ts'

/** A circuit as the controller keeps it that has laid it. */
export interface Circuit {
  readonly live: Omit<LiveCircuit, 'id' | 'routerIds' | 'linkIds'>
  readonly ends: CircuitEnds
  path: CircuitPath
}

export type CircuitTable = LiveRows<Circuit, LiveCircuit>

/** @param tell sends a message to a router, where it is connected. */
export function circuitTable(
  owner: string,
  tell: (routerId: string, message: ReturnType<typeof unrouteMessage>) => void,
): CircuitTable {
  return new LiveRows({
    owner,
    rowsMax: routerLimits.circuitsMax,
    viewOf: ({ live, ends, path }) => ({
      ...{ ...live, id: ends.id },
      routerIds: path.routerIds,
      linkIds: path.links.map(({ id }) => id),
    }),
    onRemoved: ({ ends, path }, isImmediate) => {
      for (const routerId of path.routerIds) tell(routerId, unrouteMessage(ends.id, isImmediate))
    },
  })
}
