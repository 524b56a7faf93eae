import type { Observation } from '../../ports/observations.ts'
import type { LiveCircuit } from '../../ports/live-table.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { routerLimits } from '../limits.ts'
import { LiveRowTable } from '../live-row-table.ts'
import type { CircuitPath } from './path.ts'
import type { CircuitEndpointAddresses } from './route.ts'
import { unrouteMessage } from '../../channel/messages/circuits.ts'

/**
 * A circuit as its owner stores it. The owner is the controller that created the circuit or took it
 * over.
 */
export interface Circuit {
  readonly live: Omit<LiveCircuit, 'id' | 'routerIds' | 'linkIds'>
  readonly ends: CircuitEndpointAddresses
  readonly hostId: string
  readonly instanceId: string
  /** True if the ingress router dialed the circuit with its own identity. */
  readonly isOfTunnel: boolean
  /** True if the tunnel of the egress router hosts the terminator, as identity `hostId`. */
  readonly isHostedByTunnel: boolean
  /** How many times a controller has taken over this circuit. */
  readonly turn: number
  path: CircuitPath
}

export interface CircuitListener {
  /** Called for a new or replaced circuit, and when a circuit gets a new path. */
  onKept(circuit: Circuit): void
  onDropped(id: string): void
}

/**
 * The circuits that this controller owns, with a count for each terminator. Ingress routers and
 * their clients share the limit fairly, so that no single one can fill the table.
 */
export class CircuitTable extends LiveRowTable<Circuit, LiveCircuit> {
  readonly #openAt = new Map<string, number>()
  readonly #ofRouters = new FairShare(this.rowsMax)
  readonly #ofClients = new FairShare(this.rowsMax)
  #follower: CircuitListener | null = null

  /** Sets the listener for changes, which replaces the previous one. */
  follow(follower: CircuitListener): void {
    this.#follower = follower
  }

  move(circuit: Circuit, path: CircuitPath): void {
    circuit.path = path
    this.#follower?.onKept(circuit)
  }

  /** IDs of the terminators with open circuits. */
  openTerminators(): Iterable<string> {
    return this.#openAt.keys()
  }

  openAt(terminatorId: string): number {
    return this.#openAt.get(terminatorId) ?? 0
  }

  /** Whether the client may open another circuit that begins at the router. */
  hasRoomFor(routerId: string, clientId: string): boolean {
    // @guard circuits-of-one-router--clients, circuits-of-one-router--room
    return this.#ofRouters.hasRoomFor(routerId) && this.#ofClients.hasRoomFor(clientId)
  }

  override set(id: string, circuit: Circuit): boolean {
    const before = this.kept(id)
    if (!super.set(id, circuit)) return false
    if (before !== undefined) this.#count(before, -1)
    this.#count(circuit, 1)
    this.#follower?.onKept(circuit)
    return true
  }

  override drop(id: string): Circuit | undefined {
    const circuit = super.drop(id)
    if (circuit === undefined) return undefined
    this.#count(circuit, -1)
    this.#follower?.onDropped(id)
    return circuit
  }

  #count({ live: { terminatorId, clientId }, path }: Circuit, by: 1 | -1): void {
    // Counts the ingress router only once, because a reroute never changes it.
    this.#ofRouters.take(path.routerIds[0] ?? '', by)
    this.#ofClients.take(clientId, by)
    const count = this.openAt(terminatorId) + by
    if (count > 0) this.#openAt.set(terminatorId, count)
    else this.#openAt.delete(terminatorId)
  }
}

/**
 * @param send sends a message to a router if it is connected.
 * @param onEnded called for each ended circuit.
 */
export function createCircuitTable(
  owner: string,
  send: (routerId: string, message: ReturnType<typeof unrouteMessage>) => void,
  onEnded: (circuit: Circuit) => void = () => undefined,
): CircuitTable {
  return new CircuitTable({
    owner,
    rowsMax: routerLimits.circuitsMax,
    viewOf: toLiveCircuit,
    onRemoved: (circuit, isImmediate) => {
      const { ends, path } = circuit
      onEnded(circuit)
      for (const routerId of path.routerIds) send(routerId, unrouteMessage(ends.id, isImmediate))
    },
  })
}

/** The public view of a circuit, for other parts of the program. */
export function toLiveCircuit({ live, ends, path }: Circuit): LiveCircuit {
  return {
    ...live,
    id: ends.id,
    routerIds: path.routerIds,
    linkIds: path.links.map(({ id }) => id),
  }
}

/** Data of the event about a circuit. */
export function circuitEventData(
  circuit: Circuit,
  type: 'created' | 'pathUpdated' | 'deleted',
  layMs?: number,
): Observation {
  const { hostId, instanceId, path } = circuit
  return {
    kind: 'circuit',
    type,
    circuit: toLiveCircuit(circuit),
    cost: path.cost,
    hostId,
    instanceId,
    ...(layMs === undefined ? {} : { layMs }),
  }
}
