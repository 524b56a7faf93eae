import { FairShare } from '../../lib/bounds/fair-share.ts'
import type { Clock } from '../../lib/clock.ts'
import { forwardLimits } from './limits.ts'
import type { Destination } from '../../overlay/circuits/circuit-ends.ts'

/** Place that frames come from or go to: a link to a peer, or an end in this router. */
export interface Place {
  /** Id of the link, or name of the end. */
  readonly address: string
  /**
   * The router at the other side of the link; null: it is an end. The id of a link is chosen by the
   * router that dialed it, so the id alone does not say whose it is.
   */
  readonly peerId: string | null
}

interface Hop {
  readonly fromPeerId: string | null
  readonly to: Place
}

/** An end of a circuit in this router. */
export interface LocalEnd {
  readonly destination: Destination
  /** It may send from within `forward`: what other ends of this router send waits for its turn. */
  readonly isStream: boolean
  readonly isTerminator: boolean
}

/** One circuit as this router carries it. */
export class CarriedCircuit {
  readonly id: string
  /** The controller that answers for it: the one whose route came last. */
  ownerId: string
  /** The identity that dials; '' where no controller says. */
  clientId = ''
  /** Tags of its first route: the identities that dial and host, and the service. */
  tags: Readonly<Record<string, string>> = {}
  /** Named by the controller. */
  readonly ends = new Map<string, LocalEnd>()
  /** Dials of its terminator, under way or waiting. */
  dials = 0
  /** Monotonic ms of the last payload, acknowledgement or control; repetitions do not count. */
  activeMs: number
  /** Monotonic ms of the last frame that arrived at this router. */
  receivedMs: number
  /** Monotonic ms at which its owner was seen connected, while the circuit was idle. */
  ownerSeenMs: number
  /** The side of an end of this router that has closed the circuit; null: it goes on. */
  closedBy: 'ingress' | 'egress' | null = null
  readonly #hops = new Map<string, Hop>()

  constructor(id: string, ownerId: string, nowMs: number) {
    this.id = id
    this.ownerId = ownerId
    this.activeMs = nowMs
    this.receivedMs = nowMs
    this.ownerSeenMs = nowMs
  }

  get isRouted(): boolean {
    return this.#hops.size > 0
  }

  /** Next places, by the address that they lead away from. */
  get hops(): ReadonlyMap<string, Place> {
    return new Map(Array.from(this.#hops, ([address, { to }]) => [address, to]))
  }

  /**
   * Routes of before stay, for frames that are on their way; the oldest go when there are too
   * many.
   */
  route(from: Place, to: Place): void {
    this.#hops.delete(from.address)
    this.#hops.set(from.address, { fromPeerId: from.peerId, to })
    const [oldest] = this.#hops.keys()
    if (this.#hops.size > forwardLimits.hopsPerCircuitMax && oldest !== undefined) {
      this.#hops.delete(oldest)
    }
  }

  /** Undefined: the circuit does not lead here from that place. */
  next(address: string, peerId: string | null): Place | undefined {
    const hop = this.#hops.get(address)
    // @guard circuits-at-a-router--from, circuits-at-a-router--place
    return hop !== undefined && hop.fromPeerId === peerId ? hop.to : undefined
  }
}

/** The circuits of this router; controllers share the room for them. */
export class CarriedCircuits {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #circuits = new Map<string, CarriedCircuit>()
  readonly #room = new FairShare(forwardLimits.circuitsMax)

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  get size(): number {
    return this.#circuits.size
  }

  get(id: string): CarriedCircuit | undefined {
    return this.#circuits.get(id)
  }

  all(): IterableIterator<CarriedCircuit> {
    return this.#circuits.values()
  }

  /**
   * The circuit as it is, or a new one.
   * @returns null when there is no room for one more of this controller.
   */
  take(id: string, ownerId: string): CarriedCircuit | null {
    const known = this.#circuits.get(id)
    if (known !== undefined) return known
    if (!this.#room.hasRoomFor(ownerId)) return null
    const circuit = new CarriedCircuit(id, ownerId, this.#clock.monotonicMs())
    this.#room.take(ownerId)
    this.#circuits.set(id, circuit)
    return circuit
  }

  /** The room that it takes is that of the other controller from now on. */
  give(circuit: CarriedCircuit, ownerId: string): void {
    if (this.#circuits.get(circuit.id) !== circuit) return
    this.#room.giveBack(circuit.ownerId)
    this.#room.take(ownerId)
    circuit.ownerId = ownerId
    circuit.ownerSeenMs = this.#clock.monotonicMs()
  }

  /** @returns whether it was there. */
  remove(circuit: CarriedCircuit): boolean {
    if (this.#circuits.get(circuit.id) !== circuit) return false
    this.#circuits.delete(circuit.id)
    this.#room.giveBack(circuit.ownerId)
    return true
  }
}
