import { assert } from '../../../src/lib/assert.ts'
import { forwardLimits } from '../../../src/router/forward/limits.ts'
import type { CircuitPlan } from './circuit-plan.ts'
import type { ControllerFabric } from './controller-fabric.ts'
import type { SimulatedRouter } from './simulated-router.ts'
import type { Stream } from './streams.ts'

export interface JudgedWorld {
  readonly plan: CircuitPlan
  readonly routers: ReadonlyMap<string, SimulatedRouter>
  readonly fabrics: ReadonlyMap<string, ControllerFabric>
  readonly streams: ReadonlyMap<string, Stream>
  readonly controllerLostMs: readonly number[]
  readonly isTrafficOver: boolean
  readonly tally: { note(kind: 'circuit survived', times?: number): void }
}

/** Maximum controllers in runs with routers. */
const CONTROLLERS_MAX = 3
const LOOK_EVERY_MS = 100
/** Silently cut channels time out and are dialed again with growing delays. */
const CONNECTED_MS_MAX = 90_000
const CARRIED_MS_MAX = 60_000
const OWNED_MS_MAX = 60_000
const GONE_MS_MAX = 60_000
/** Controllers share circuits within this time, ms. */
const TOLD_MS_MAX = 2_000
/** Bytes that an end may hold in addition to its buffers: a partial piece, and protocol flags. */
const SPARE_BYTES = 64 * 1024

/**
 * Invariants of circuits. During a run: data arrives in order, once, and on the right circuit (C1);
 * a clean end comes after all data (C2); tables and buffers stay within their bounds (C3). Once the
 * faults are over: routers and controllers reconnect (liveness); each open end has its other end
 * (C4) and receives all that it sent (C5); each circuit on a router is listed by a controller with
 * this router in its path (C6); each listed circuit is on all routers of its path (C7); without
 * faults of routers and links, circuits outlive their controllers (C9). Once the users have closed
 * their circuits: no router and no controller has a circuit (C8).
 */
export class CircuitInvariants {
  readonly #world: JudgedWorld
  readonly #run: (ms: number) => Promise<void>

  constructor(world: JudgedWorld, run: (ms: number) => Promise<void>) {
    this.#world = world
    this.#run = run
  }

  assertBounds(): void {
    const { rxBufferSize = 0, txPortalMaxSize = 0, txQueueSize = 0 } = this.#world.plan.xgress
    const { dials } = this.#world.plan
    // A router tries the next controller when one fails before it has answered.
    const circuitsMax = dials.length * CONTROLLERS_MAX
    const endsMax = circuitsMax * forwardLimits.endsPerCircuitMax
    const pieceBytes = 4 * this.#world.plan.wordsAPieceMax
    const bytesMax =
      2 * rxBufferSize + txPortalMaxSize + (txQueueSize + 1) * pieceBytes + SPARE_BYTES
    for (const { id, life } of this.#world.routers.values()) {
      if (life === null) continue
      const figures = life.forwarder.figures()
      const ends = figures['forwarder.ends'] ?? 0
      const circuits = figures['forwarder.circuits'] ?? 0
      const bytes = figures['forwarder.buffered_bytes'] ?? 0
      assert(circuits <= circuitsMax, `C3: ${id} carries ${circuits} circuits`)
      assert(ends <= endsMax, `C3: ${id} has ${ends} endpoints of ${circuits} circuits`)
      assert(bytes <= ends * bytesMax, `C3: ${id} holds ${bytes} bytes for ${ends} endpoints`)
    }
  }

  async settle(): Promise<void> {
    await this.#waitFor(CONNECTED_MS_MAX, () => this.#lacksConnection())
    await this.#waitFor(CARRIED_MS_MAX, () => this.#lacksWords())
    await this.#waitFor(OWNED_MS_MAX, () => this.#lacksOwner())
    if (this.#world.plan.isSteady) this.#assertSteady()
    const open = [...this.#world.streams.values()].filter((stream) => stream.open.length > 0)
    this.#world.tally.note('circuit survived', open.length)
    for (const router of this.#world.routers.values()) router.closeAll()
    await this.#waitFor(GONE_MS_MAX, () => this.#leftBehind())
  }

  /** A dying owner has already shared its circuits, except those created just before. */
  #assertSteady(): void {
    const { streams, controllerLostMs } = this.#world
    for (const { ends, madeMs } of streams.values()) {
      const isNew = controllerLostMs.some(
        (lostMs) => madeMs !== null && lostMs >= madeMs && lostMs - madeMs < TOLD_MS_MAX,
      )
      for (const end of ends) {
        const isKept = end.side !== 'client' || !end.isEndless || isNew || end.isOpen
        assert(isKept, `C9: ${end.name} was closed: ${end.closed ?? ''}`)
      }
    }
  }

  /** Waits until `lack` reports nothing missing. @throws with the missing items. */
  async #waitFor(msMax: number, lack: () => string | null): Promise<void> {
    for (let ms = 0; ms < msMax; ms += LOOK_EVERY_MS) {
      if (lack() === null) return
      await this.#run(LOOK_EVERY_MS)
    }
    const missing = lack()
    if (missing !== null) throw new Error(`${missing}, ${msMax / 1000} s after the faults`)
  }

  #lacksConnection(): string | null {
    const { routers, fabrics, plan, isTrafficOver } = this.#world
    if (!isTrafficOver) return 'liveness: traffic goes on'
    for (const { id, life, asked } of routers.values()) {
      if (asked > 0) return `liveness: a client of ${id} waits for a circuit`
      const connected = life?.controllers.connections ?? []
      if (connected.length < fabrics.size) {
        return `liveness: ${id} has ${connected.length} of ${fabrics.size} controllers`
      }
    }
    for (const [a, b] of plan.edges) {
      const ids = [this.#linkId(a, b), this.#linkId(b, a)]
      if (ids[0] === undefined || ids[0] !== ids[1]) return `liveness: ${a} has no link to ${b}`
      for (const [id, { links }] of fabrics) {
        if (links.get(ids[0])?.state !== 'Connected') {
          return `liveness: ${id} does not know the link of ${a} and ${b}`
        }
      }
    }
    return null
  }

  #linkId(from: string, to: string): string | undefined {
    const links = this.#world.routers.get(from)?.life?.links.links ?? []
    return links.find(({ peerId }) => peerId === to)?.id
  }

  #lacksWords(): string | null {
    for (const { open, number } of this.#world.streams.values()) {
      const [one, other] = open
      if (one === undefined) continue
      if (other === undefined) return `C4: ${one.name} has no other endpoint`
      if (open.length > 2 || one.side === other.side) {
        return `C4: circuit ${number} has ${open.length} endpoints: ${open.map(({ name }) => name).join()}`
      }
      for (const [from, to] of [
        [one, other],
        [other, one],
      ] as const) {
        if (to.received < from.sent) {
          return `C5: ${to.name} got ${to.received} of ${from.sent} words`
        }
      }
    }
    return null
  }

  #lacksOwner(): string | null {
    const { routers, fabrics } = this.#world
    for (const { id, carried } of routers.values()) {
      for (const circuitId of carried) {
        const owners = [...fabrics.values()].filter(
          ({ circuits }) => circuits.kept(circuitId)?.path.routerIds.includes(id) === true,
        )
        if (owners.length !== 1) {
          return `C6: ${id} carries ${this.#shown(circuitId)} of ${owners.length} controllers`
        }
      }
    }
    for (const [id, { circuits }] of fabrics) {
      for (const { ends, path } of circuits.allKept()) {
        const shown = this.#shown(ends.id)
        for (const routerId of path.routerIds) {
          const isCarried = routers.get(routerId)?.carried.includes(ends.id) === true
          if (!isCarried) return `C7: ${id} lists ${shown}, which ${routerId} does not carry`
        }
        const open = this.#world.streams.get(ends.id)?.open.length ?? 0
        if (open !== 2) return `C7: ${id} lists ${shown}, which has ${open} endpoints`
      }
    }
    return null
  }

  #leftBehind(): string | null {
    for (const { id, carried, life } of this.#world.routers.values()) {
      const [first] = carried
      if (first !== undefined) return `C8: ${id} still carries ${this.#shown(first)}`
      const ends = life?.forwarder.figures()['forwarder.ends'] ?? 0
      if (ends > 0) return `C8: ${id} still has ${ends} endpoints`
    }
    for (const [id, { circuits }] of this.#world.fabrics) {
      const [first] = circuits.allKept()
      if (first !== undefined) return `C8: ${id} still lists ${this.#shown(first.ends.id)}`
    }
    return null
  }

  #shown(circuitId: string): string {
    return `circuit ${this.#world.streams.get(circuitId)?.number ?? circuitId}`
  }
}
