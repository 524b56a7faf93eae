import type { LiveFact } from '../../ports/live-facts.ts'
import type { LiveCircuit } from '../../ports/live-circuits.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { routerLimits } from '../limits.ts'
import { LiveRows } from '../live-rows.ts'
import type { CircuitPath } from './path.ts'
import type { CircuitEnds } from './route.ts'
import { unrouteMessage } from '../../channel/messages/circuits.ts'

/** A circuit as its owner keeps it: the controller that laid it, or the heir of that. */
export interface Circuit {
  readonly live: Omit<LiveCircuit, 'id' | 'routerIds' | 'linkIds'>
  readonly ends: CircuitEnds
  readonly hostId: string
  readonly instanceId: string
  /** The tunnel of the first router has dialed it. */
  readonly isOfTunnel: boolean
  /** The tunnel of the last router, which is `hostId`, hosts it. */
  readonly isHostedByTunnel: boolean
  /** How often a controller took it over from another one. */
  readonly turn: number
  path: CircuitPath
}

export interface CircuitFollower {
  /** Called for a circuit that is new, or has another path. */
  onKept(circuit: Circuit): void
  onDropped(id: string): void
}

/**
 * The circuits that a controller answers for, and how many of them lead to each terminator. Routers
 * that they begin at share the room, and so do clients: none of either can fill it.
 */
export class CircuitTable extends LiveRows<Circuit, LiveCircuit> {
  readonly #openAt = new Map<string, number>()
  readonly #ofRouters = new FairShare(this.rowsMax)
  readonly #ofClients = new FairShare(this.rowsMax)
  #follower: CircuitFollower | null = null

  /** Instead of the follower before it. */
  follow(follower: CircuitFollower): void {
    this.#follower = follower
  }

  move(circuit: Circuit, path: CircuitPath): void {
    circuit.path = path
    this.#follower?.onKept(circuit)
  }

  openAt(terminatorId: string): number {
    return this.#openAt.get(terminatorId) ?? 0
  }

  /** Whether there is room for one more circuit of the client that begins at the router. */
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
    // Whichever way it takes, it begins at the same router.
    this.#ofRouters.take(path.routerIds[0] ?? '', by)
    this.#ofClients.take(clientId, by)
    const count = this.openAt(terminatorId) + by
    if (count > 0) this.#openAt.set(terminatorId, count)
    else this.#openAt.delete(terminatorId)
  }
}

/**
 * @param tell sends a message to a router, where it is connected.
 * @param onEnded told of each that has ended.
 */
export function circuitTable(
  owner: string,
  send: (routerId: string, message: ReturnType<typeof unrouteMessage>) => void,
  onEnded: (circuit: Circuit) => void = () => undefined,
): CircuitTable {
  return new CircuitTable({
    owner,
    rowsMax: routerLimits.circuitsMax,
    viewOf: circuitView,
    onRemoved: (circuit, isImmediate) => {
      const { ends, path } = circuit
      onEnded(circuit)
      for (const routerId of path.routerIds) send(routerId, unrouteMessage(ends.id, isImmediate))
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

/** Fact of a circuit, as events tell it. */
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
