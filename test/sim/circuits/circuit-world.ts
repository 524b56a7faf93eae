import { type Random, seededRandom } from '../../../src/lib/random.ts'
import { assert } from '../../../src/lib/assert.ts'
import type { ChannelMessage } from '../../../src/channel/frame.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import type { HostLookup } from '../../../src/fabric/circuits/host-lookup.ts'
import type { Observation } from '../../../src/ports/observations.ts'
import type { Controller } from '../controller.ts'
import type { RouterMisfortune } from '../plan.ts'
import type { Tally } from '../tally.ts'
import type { TraceHash } from '../trace-hash.ts'
import type { VirtualLoop } from '../virtual-loop.ts'
import type { CircuitPlan, DialPlan } from './circuit-plan.ts'
import { ControllerFabric } from './controller-fabric.ts'
import { Frames } from './frames.ts'
import { CircuitInvariants } from './invariants.ts'
import type { TestCertificates } from '../test-certificates.ts'
import { seedUuids } from './seeded-uuids.ts'
import { shownMessage } from './shown-message.ts'
import { BINDING, type RouterWorld, SimulatedRouter } from './simulated-router.ts'
import type { Party, SimulatedSocket } from './simulated-socket.ts'
import { type Habits, Stream, type StreamEnd } from './streams.ts'
import { Wires } from './wires.ts'

/** Functions that the routers of a run need from the cluster. */
export interface ClusterWorld {
  readonly loop: VirtualLoop
  readonly tally: Tally
  readonly trace: TraceHash
  readonly controllers: ReadonlyMap<string, Controller>
  readonly keyring: Pick<TestCertificates, 'of'>
  clockOf(id: string): Clock
  running(): readonly Controller[]
  fail(error: unknown): void
  runUntil(untilMs: number): Promise<void>
}

const START_MS = 1_700_000_000_000
/** Traffic continues for this time after the last fault, ms. */
const TRAFFIC_MS = 2_000
const BOUNDS_EVERY_MS = 500

/** The routers of a run, their links and circuits. */
export class CircuitWorld implements RouterWorld {
  readonly loop: VirtualLoop
  readonly tally: Tally
  readonly plan: CircuitPlan
  readonly chance: Random
  readonly frames: Frames
  readonly routers = new Map<string, SimulatedRouter>()
  readonly fabrics = new Map<string, ControllerFabric>()
  readonly streams = new Map<string, Stream>()
  /** Virtual times at which controllers ended. */
  readonly controllerLostMs: number[] = []
  isTrafficOver = false
  readonly #cluster: ClusterWorld
  readonly #controllerIds: readonly string[]
  readonly #wires: Wires
  readonly #invariants: CircuitInvariants
  readonly #hosts: HostLookup

  constructor(cluster: ClusterWorld, plan: CircuitPlan, seed: number) {
    this.#cluster = cluster
    this.loop = cluster.loop
    this.tally = cluster.tally
    this.plan = plan
    this.chance = seededRandom(seed ^ 0xc1c7)
    seedUuids(seed)
    this.frames = new Frames(this.chance, plan.frames, this.tally)
    this.#controllerIds = [...cluster.controllers.keys()]
    this.#wires = new Wires(this.loop, this.chance, plan.delayMsMax)
    this.#hosts = hostsOf(plan)
    for (const id of plan.routerIds) {
      const peers = plan.edges.flatMap(([a, b]) => (a === id ? [b] : b === id ? [a] : []))
      const router = new SimulatedRouter(this, id, new Set(peers))
      this.routers.set(id, router)
      router.start()
    }
    for (const dial of plan.dials) this.loop.after(dial.atMs, () => this.#dial(dial))
    this.#invariants = new CircuitInvariants(this, (ms) => cluster.runUntil(this.loop.nowMs + ms))
    this.#watchBounds()
  }

  controllerIds(): readonly string[] {
    return this.#controllerIds
  }

  controllerKey(id: string): string {
    return Buffer.from(this.#cluster.keyring.of(id).publicKeySha256).toString('hex')
  }

  clockOf(): Clock {
    return { nowMs: () => START_MS + this.loop.nowMs, monotonicMs: () => this.loop.nowMs }
  }

  fail(error: Error): void {
    this.#cluster.fail(error)
  }

  /** Called when the parts of a controller exist and its cluster node is about to start. */
  onStarted({ id, life }: Controller): void {
    assert(life !== null, 'it has started')
    this.loop.within(life.threads.main, () => {
      const fabric = new ControllerFabric({
        id,
        life,
        clock: this.#cluster.clockOf(id),
        random: this.chance,
        hosts: this.#hosts,
        routerIds: this.plan.routerIds,
        publishFact: (fact) => this.#onFact(fact),
      })
      this.fabrics.set(id, fabric)
    })
  }

  onStopped({ id }: Controller): void {
    if (!this.fabrics.delete(id)) return
    this.controllerLostMs.push(this.loop.nowMs)
    this.#wires.processEnded(id, this.chance.next() < 0.3)
  }

  connectTo(from: Party, name: string): SimulatedSocket {
    const router = this.routers.get(name)
    if (router !== undefined) {
      const { life } = router
      const party = life?.party ?? from
      const accept = (socket: SimulatedSocket): void => router.acceptLink(socket)
      return this.#wires.connect(from, { ...party, name }, life === null ? null : accept)
    }
    const life = this.#cluster.controllers.get(name)?.life
    const fabric = this.fabrics.get(name)
    const context = life?.threads.main ?? from.context
    const accept = (socket: SimulatedSocket): void => fabric?.accept(socket)
    return this.#wires.connect(from, { name, context }, fabric === undefined ? null : accept)
  }

  streamOf(circuitId: string): Stream {
    const known = this.streams.get(circuitId)
    if (known !== undefined) return known
    const stream = new Stream(circuitId, this.streams.size + 1)
    this.streams.set(circuitId, stream)
    return stream
  }

  habitsOf(side: StreamEnd['side']): Habits {
    const { endlessShare, wordsAPieceMax, pauseMsMax, restChance } = this.plan
    const isEndless = this.chance.next() < endlessShare
    this.tally.note(side === 'client' ? 'circuit dialed' : 'host dialed')
    return {
      words: isEndless ? Infinity : this.chance.integer(0, 20 * wordsAPieceMax),
      wordsAPieceMax,
      pauseMsMax,
      restChance,
    }
  }

  onPiece({ side, stream, received }: StreamEnd): void {
    this.#cluster.trace.add(this.loop.nowMs, side, stream.number, received)
  }

  onLink(routerId: string, peerId: string, event: 'up' | 'down'): void {
    this.#cluster.trace.add(this.loop.nowMs, routerId, 'link', peerId, event)
  }

  onFrame(
    routerId: string,
    controllerId: string,
    direction: 'in' | 'out',
    message: ChannelMessage,
  ): void {
    const shown = shownMessage(message, (id) => `circuit ${this.streamOf(id).number}`)
    if (shown === null) return
    const way = direction === 'in' ? '<' : '>'
    this.#cluster.trace.add(this.loop.nowMs, routerId, way, controllerId, shown)
  }

  /**
   * Carries out a router fault.
   * @param chance random numbers for values drawn now.
   */
  befall(what: RouterMisfortune, chance: Random): void {
    switch (what.type) {
      case 'router crash':
        this.#crash(this.#drawRouter(chance), what)
        return
      case 'router pause':
        this.#drawRouter(chance).pause(this.loop.nowMs + what.forMs)
        this.tally.note('router pause')
        return
      case 'link cut':
        this.#cut(this.#drawEdge(chance), what.forMs)
        this.tally.note('link cut')
        return
      case 'link reset': {
        const [a, b] = this.#drawEdge(chance)
        if (this.#wires.reset(a, b) > 0) this.tally.note('link reset')
        return
      }
      case 'link slow': {
        const [a, b] = this.#drawEdge(chance)
        this.#wires.slow(a, b, what.extraMs)
        this.tally.note('link slow')
        this.loop.after(what.forMs, () => this.#wires.mend(a, b))
        return
      }
      case 'control cut':
        this.#cut(this.#drawControl(chance), what.forMs)
        this.tally.note('control channel cut')
        return
      case 'control reset': {
        const [a, b] = this.#drawControl(chance)
        if (this.#wires.reset(a, b) > 0) this.tally.note('control channel reset')
        return
      }
    }
  }

  heal(): void {
    this.frames.isHealed = true
    this.#wires.mendAll()
    for (const router of this.routers.values()) {
      router.pause(0)
      if (router.life === null) router.start()
    }
    this.loop.after(TRAFFIC_MS, () => {
      this.isTrafficOver = true
    })
  }

  /**
   * After the faults: checks all invariants, then closes the circuits and requires that none
   * remains.
   */
  async settle(): Promise<void> {
    await this.#invariants.settle()
  }

  #onFact(fact: Observation): void {
    if (fact.kind === 'circuitFailed') this.tally.note('circuit without a way')
    if (fact.kind !== 'circuit') return
    const stream = this.streamOf(fact.circuit.id)
    this.#cluster.trace.add(this.loop.nowMs, 'circuit', stream.number, fact.type)
    if (fact.type === 'created') {
      stream.madeMs = this.loop.nowMs
      this.tally.note('circuit made')
    } else if (fact.type === 'pathUpdated') this.tally.note('circuit rerouted')
    else this.tally.note('circuit ended')
  }

  #dial({ routerId, serviceId }: DialPlan): void {
    if (!this.isTrafficOver) this.routers.get(routerId)?.dial(serviceId)
  }

  #crash(
    router: SimulatedRouter,
    { isSilent, downMs }: { readonly isSilent: boolean; readonly downMs: number },
  ): void {
    if (router.life === null) return
    this.tally.note(isSilent ? 'router without power' : 'router crash')
    this.#cluster.trace.add(this.loop.nowMs, router.id, 'crash')
    router.stop()
    this.#wires.processEnded(router.id, isSilent)
    this.loop.after(downMs, () => {
      if (router.life === null) router.start()
    })
  }

  #cut([a, b]: readonly [string, string], forMs: number): void {
    this.#wires.cut(a, b)
    this.loop.after(forMs, () => this.#wires.mend(a, b))
  }

  #drawRouter(chance: Random): SimulatedRouter {
    const router = [...this.routers.values()][chance.integer(0, this.routers.size - 1)]
    assert(router !== undefined, 'there are routers')
    return router
  }

  #drawEdge(chance: Random): readonly [string, string] {
    const { edges } = this.plan
    const edge = edges[chance.integer(0, edges.length - 1)]
    assert(edge !== undefined, 'there are links')
    return edge
  }

  #drawControl(chance: Random): readonly [string, string] {
    const { id } = this.#drawRouter(chance)
    return [this.#controllerIds[chance.integer(0, this.#controllerIds.length - 1)] ?? '', id]
  }

  #watchBounds(): void {
    this.loop.after(BOUNDS_EVERY_MS, () => {
      this.#invariants.assertBounds()
      this.#watchBounds()
    })
  }
}

/** The records of services, which no run changes. */
function hostsOf({ hosts, strategy }: CircuitPlan): HostLookup {
  return {
    service: (serviceId) => ({
      strategy,
      encryptionRequired: false,
      maxIdleTimeMs: 0,
      hosts: (hosts[serviceId] ?? []).map((routerId) => ({
        routerId,
        terminatorId: `${serviceId} at ${routerId}`,
        hostId: routerId,
        isMadeByRouter: false,
        binding: BINDING,
        address: serviceId,
        cost: 0,
        precedence: 'default',
        instanceId: '',
        peerData: new Map(),
      })),
    }),
    routerCost: () => 10,
    isEndOnly: () => false,
  }
}
