import { FairShare } from '../../lib/bounds/fair-share.ts'
import type { Clock } from '../../lib/clock.ts'
import { forwardLimits } from './limits.ts'
import type { FrameDestination } from '../../overlay/circuits/circuit-endpoint.ts'

/**
 * Source or destination of frames: a link to a peer, or a circuit endpoint in this router or in one
 * of its clients.
 */
export interface FramePeer {
  /** ID of the link, or address of the circuit endpoint. */
  readonly address: string
  /**
   * The router at the other side of the link; null for a circuit endpoint. The dialing router
   * chooses the link ID, so the ID alone does not identify the peer.
   */
  readonly peerId: string | null
}

interface Hop {
  readonly fromPeerId: string | null
  readonly to: FramePeer
}

/** A circuit endpoint in this router or in one of its clients. */
interface LocalEnd {
  readonly destination: FrameDestination
  /**
   * True if the endpoint may send a frame while `forward` runs, so that frames for it must be
   * queued first; false if it sends in a later turn of the event loop.
   */
  readonly isStream: boolean
  readonly isTerminator: boolean
}

/** A circuit that runs through this router. */
export class CarriedCircuit {
  readonly id: string
  /** The controller that owns the circuit: the one that sent the latest route. */
  ownerId: string
  /** The identity that dials; '' if the controller does not report it. */
  clientId = ''
  /**
   * Tags of the circuit's first route: the dialing identity, the hosting identity and the service.
   */
  tags: Readonly<Record<string, string>> = {}
  /** Circuit endpoints by the address that the controller assigned. */
  readonly ends = new Map<string, LocalEnd>()
  /** Number of dials to the circuit's terminator that run or wait. */
  dials = 0
  /** Monotonic ms at which the circuit last forwarded a frame, except retransmissions. */
  activeMs: number
  /** Monotonic ms at which the last frame arrived. */
  receivedMs: number
  /**
   * Monotonic ms at which the owner was last seen connected, updated only while the circuit is idle
   * or closed.
   */
  ownerSeenMs: number
  /** Side of the local endpoint that has closed the circuit; null while the circuit is open. */
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

  /** Next hop for each source address. */
  get hops(): ReadonlyMap<string, FramePeer> {
    return new Map(Array.from(this.#hops, ([address, { to }]) => [address, to]))
  }

  /**
   * Adds a route. Earlier routes stay for frames in transit; above the limit, the oldest is
   * dropped.
   */
  route(from: FramePeer, to: FramePeer): void {
    this.#hops.delete(from.address)
    this.#hops.set(from.address, { fromPeerId: from.peerId, to })
    const [oldest] = this.#hops.keys()
    if (this.#hops.size > forwardLimits.hopsPerCircuitMax && oldest !== undefined) {
      this.#hops.delete(oldest)
    }
  }

  /** The next hop for frames from this source; undefined if there is no route. */
  next(address: string, peerId: string | null): FramePeer | undefined {
    const hop = this.#hops.get(address)
    // @guard circuits-at-a-router--from, circuits-at-a-router--place
    return hop !== undefined && hop.fromPeerId === peerId ? hop.to : undefined
  }
}

/** The circuits of this router. The controllers that own them share the maximum number fairly. */
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
   * Returns the existing circuit, or creates one.
   * @returns null if the controller has reached its limit.
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

  /**
   * Makes another controller the owner of the circuit, which then counts toward that controller's
   * limit.
   */
  give(circuit: CarriedCircuit, ownerId: string): void {
    if (this.#circuits.get(circuit.id) !== circuit) return
    this.#room.giveBack(circuit.ownerId)
    this.#room.take(ownerId)
    circuit.ownerId = ownerId
    circuit.ownerSeenMs = this.#clock.monotonicMs()
  }

  /** @returns whether the circuit existed. */
  remove(circuit: CarriedCircuit): boolean {
    if (this.#circuits.get(circuit.id) !== circuit) return false
    this.#circuits.delete(circuit.id)
    this.#room.giveBack(circuit.ownerId)
    return true
  }
}
