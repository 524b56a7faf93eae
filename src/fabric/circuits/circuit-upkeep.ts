import {
  CircuitConfirmationSchema,
  type Fault,
  FaultSubject,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import { decodeInSteps } from '../../channel/wire-scan.ts'
import type { PublishFact } from '../../ports/live-facts.ts'
import type { LinkIds, LiveLink, LiveLinks, PathLink } from '../../ports/live-links.ts'
import type { RouterConnection } from '../connection.ts'
import { routerLimits } from '../limits.ts'
import { type Circuit, circuitFact, type CircuitTable } from './circuit-table.ts'
import type { Hosts } from './hosts.ts'
import { isCircuitId, wordsIn } from './named-circuits.ts'
import { type CircuitPath, cheapestPaths } from './path.ts'
import { type CircuitEnds, routesOf } from './route.ts'
import type { SharedCircuits } from './shared-circuits.ts'
import { REROUTE_ATTEMPT, unrouteMessage } from '../../channel/messages/circuits.ts'
import type { IsTunnelGranted } from '../clients/tunnel-duty.ts'

const NS_PER_MS = 1_000_000n
/** Circuits looked at in one step. */
const SLICE = 1000
/** A router has lost the link that it was to take; it has told of that before. */
const INVALID_LINK = 8
const REROUTE_TERMS = {
  attempt: REROUTE_ATTEMPT,
  timeoutMs: routerLimits.routeTimeoutMs,
  tags: {},
  dial: null,
}

export interface CircuitUpkeepDeps {
  readonly table: CircuitTable
  readonly hosts: Hosts
  readonly links: LiveLinks
  readonly connection: (routerId: string) => RouterConnection | undefined
  readonly publishFact?: PublishFact
  /** Whether a way of the circuit is being laid over the router. */
  readonly isLaid: (routerId: string, circuitId: string) => boolean
  /** Absent: this controller is the only one. */
  readonly shared?: SharedCircuits
  readonly isGranted: IsTunnelGranted
  readonly clock: Clock
}

/** Keeps circuits going once they are laid, and ends those that may not or can not go on. */
export class CircuitUpkeep {
  readonly #deps: CircuitUpkeepDeps
  readonly #circuits: CircuitTable
  /** Each gets the ways of its circuits once. */
  readonly #routedAgain = new WeakSet<RouterConnection>()
  readonly #startedMs: number

  constructor(deps: CircuitUpkeepDeps) {
    const { table, shared, clock } = deps
    this.#deps = deps
    this.#circuits = table
    this.#startedMs = clock.monotonicMs()
    if (shared === undefined) return
    shared.onTakenOver = (circuit) => this.#onTakenOver(circuit)
    shared.onContested = (circuit) => this.#sendRoutes(circuit.ends, circuit.path)
  }

  onSweep(): void {
    this.#deps.shared?.sweep()
  }

  /** This controller answers for it from now on: it may be over, or its way be cut. */
  #onTakenOver(circuit: Circuit): void {
    const { shared, links, isGranted } = this.#deps
    const { ends, path } = circuit
    // @guard circuits-taken-over--tunnel
    if (shared?.isOver(circuit) === true || this.#isUngranted(circuit, isGranted)) {
      this.#circuits.remove(ends.id, true)
    } else if (path.links.some((link) => links.isLost(link))) this.#reroute(circuit)
    else this.#sendRoutes(ends, path)
  }

  /** Each router on the way that is connected here. */
  #sendRoutes(ends: CircuitEnds, path: CircuitPath): void {
    for (const [at, route] of routesOf(ends, path, REROUTE_TERMS).entries()) {
      this.#deps.connection(path.routerIds[at] ?? '')?.channel.send(route)
    }
  }

  /** A router asks about circuits through which nothing passes. */
  *onConfirmation(
    { router, channel }: RouterConnection,
    { body }: ChannelMessage,
  ): Generator<void, void> {
    const { circuitIds, idleTimes } = yield* decodeInSteps(CircuitConfirmationSchema, body)
    // This controller has restarted, or ended it while the router was away.
    for (const id of circuitIds) {
      const idleNs = Object.hasOwn(idleTimes, id) ? (idleTimes[id] ?? 0n) : 0n
      const circuit = this.#answeredFor(router.id, id)
      if (circuit === undefined) this.#unroute(channel, router.id, id)
      else this.#endIdle(circuit, router.id, Number(idleNs / NS_PER_MS))
      yield
    }
  }

  /** An end alone knows how long nothing passed: a router on the way may be off it since. */
  #endIdle({ ends, path, live }: Circuit, routerId: string, idleMs: number): void {
    const { routerIds } = path
    if (routerId !== routerIds[0] && routerId !== routerIds.at(-1)) return
    const maxMs = this.#deps.hosts.service(live.serviceId)?.maxIdleTimeMs ?? 0
    if (maxMs > 0 && idleMs >= maxMs) this.#circuits.remove(ends.id)
  }

  /** A circuit that nobody here knows: the router keeps it, and tells of it, until it hears so. */
  #unroute(channel: RouterConnection['channel'], routerId: string, id: string): void {
    const { clock, isLaid } = this.#deps
    if (!isCircuitId(id) || isLaid(routerId, id)) return
    // Other controllers may have yet to tell of it.
    const hasHeard = clock.monotonicMs() - this.#startedMs >= routerLimits.circuitsUnknownMs
    // @guard 48-circuit-of-nobody-is-left-at-its-router
    if (this.#deps.shared === undefined || hasHeard) channel.send(unrouteMessage(id, true))
  }

  /** The circuit that a router asks its owner about; after a restart, another one may have it. */
  #answeredFor(routerId: string, id: string, hasEnded = false): Circuit | undefined {
    return this.carriedBy(routerId, id) ?? this.#deps.shared?.claim(routerId, id, hasEnded)
  }

  /** Undefined for one that the router is no part of, whether there is one or not. */
  carriedBy(routerId: string, id: string): Circuit | undefined {
    const circuit = this.#circuits.kept(id)
    // @guard circuits-of-others--carried
    return circuit?.path.routerIds.includes(routerId) === true ? circuit : undefined
  }

  /** A router can not go on with circuits, or has lost a link that circuits alone know of. */
  *onFault({ router, channel }: RouterConnection, fault: Fault): Generator<void, void> {
    const { subject, id, iteration } = fault
    if (subject === FaultSubject.INGRESS || subject === FaultSubject.EGRESS) {
      // @guard circuits-of-others--ends
      const isKnown = this.#answeredFor(router.id, id, true) !== undefined
      // @guard 49-fault-of-an-end-is-ignored
      if (isKnown) this.#circuits.remove(id)
      else this.#unroute(channel, router.id, id)
    } else if (subject === FaultSubject.FORWARD || subject === FaultSubject.UNKNOWN_OWNER_FORWARD) {
      // Another controller may know the circuit where the router does not know whose it is.
      const isOwned = subject === FaultSubject.FORWARD
      for (const each of wordsIn(id)) {
        const circuit = isOwned
          ? this.#answeredFor(router.id, each)
          : this.carriedBy(router.id, each)
        if (circuit !== undefined) this.#reroute(circuit)
        else if (isOwned) this.#unroute(channel, router.id, each)
        yield
      }
    } else if (subject === FaultSubject.LINK || subject === FaultSubject.LINK_DUPLICATE) {
      // @guard circuits-of-others--links
      const isLost = (link: PathLink): boolean =>
        link.id === id &&
        link.iteration <= iteration &&
        (link.sourceRouterId === router.id || link.destRouterId === router.id)
      yield* this.#rerouteFrom(isLost)
    }
  }

  /**
   * A router names all the links that it has dialed. What was known of its links has gone with its
   * channel, but for the circuits over them.
   */
  *onLinksReported(sourceRouterId: string, ids: LinkIds): Generator<void, void> {
    yield* this.#rerouteFrom((link) => link.sourceRouterId === sourceRouterId && !ids.has(link.id))
    const connection = this.#deps.connection(sourceRouterId)
    if (connection === undefined || this.#routedAgain.has(connection)) return
    this.#routedAgain.add(connection)
    // @guard 51-router-that-comes-back-is-not-routed-again
    yield* this.#routeAgain(connection)
  }

  /**
   * Routes again, as messages sent over the channel before may be lost with it. A router that has
   * started again carries nothing, and refuses a way whose end it does not have.
   */
  *#routeAgain({ router, channel }: RouterConnection): Generator<void, void> {
    let looked = 0
    for (const { ends, path } of Array.from(this.#circuits.allKept())) {
      looked += 1
      if (looked % SLICE === 0) yield
      const at = path.routerIds.indexOf(router.id)
      const route = at < 0 ? undefined : routesOf(ends, path, REROUTE_TERMS)[at]
      if (route === undefined || this.#circuits.kept(ends.id)?.path !== path) continue
      channel.send(route)
      yield
    }
  }

  onLinkGone({ id }: Pick<LiveLink, 'id'>): void {
    for (const circuit of Array.from(this.#circuits.allKept())) {
      if (circuit.path.links.some((link) => link.id === id)) this.#reroute(circuit)
    }
  }

  *#rerouteFrom(isLost: (link: PathLink) => boolean): Generator<void, void> {
    let looked = 0
    for (const circuit of Array.from(this.#circuits.allKept())) {
      looked += 1
      if (looked % SLICE === 0) yield
      const isThere = this.#circuits.kept(circuit.ends.id) === circuit
      if (isThere && circuit.path.links.some(isLost)) this.#reroute(circuit)
    }
  }

  onSessionsEnded(sessionIds: ReadonlySet<string>): void {
    for (const { ends, live } of Array.from(this.#circuits.allKept())) {
      // @guard access-that-stays-open--circuit
      if (sessionIds.has(live.sessionId)) this.#circuits.remove(ends.id, true)
    }
  }

  /**
   * A client keeps no circuit that begins at a router which it may not use any more.
   * @param identityIds those that may have lost one; null: any may have.
   */
  endAtForbidden(
    identityIds: ReadonlySet<string> | null,
    mayUse: (identityId: string, routerId: string) => boolean,
  ): void {
    const judged = new Map<string, boolean>()
    for (const { ends, live, path, isOfTunnel } of Array.from(this.#circuits.allKept())) {
      const { clientId } = live
      if (isOfTunnel || identityIds?.has(clientId) === false) continue
      const routerId = path.routerIds[0] ?? ''
      const key = `${clientId} ${routerId}`
      // @guard access-that-stays-open--router
      const isAllowed = judged.get(key) ?? mayUse(clientId, routerId)
      judged.set(key, isAllowed)
      if (!isAllowed) this.#circuits.remove(ends.id, true)
    }
  }

  /** A tunnel of a router keeps no circuit that it may not dial, or host, any more. */
  endUngranted(isGranted: IsTunnelGranted): void {
    const judged = new Map<string, boolean>()
    const isAllowed = (...[routerId, serviceId, type]: Parameters<IsTunnelGranted>): boolean => {
      const key = `${type} ${routerId} ${serviceId}`
      const known = judged.get(key) ?? isGranted(routerId, serviceId, type)
      judged.set(key, known)
      return known
    }
    for (const circuit of Array.from(this.#circuits.allKept())) {
      if (this.#isUngranted(circuit, isAllowed)) this.#circuits.remove(circuit.ends.id, true)
    }
  }

  #isUngranted(circuit: Circuit, isGranted: IsTunnelGranted): boolean {
    const { live, hostId, isOfTunnel, isHostedByTunnel } = circuit
    const { clientId, serviceId } = live
    // @guard tunnels-of-routers--dialed, tunnels-of-routers--hosted
    return (
      (isOfTunnel && !isGranted(clientId, serviceId, 'Dial')) ||
      (isHostedByTunnel && !isGranted(hostId, serviceId, 'Bind'))
    )
  }

  /**
   * A router answers that it does not take another way of a circuit: one of its ends is gone there.
   */
  onNotRerouted(routerId: string, id: string, errorCode: number): void {
    if (errorCode === INVALID_LINK) return
    if (this.carriedBy(routerId, id) !== undefined) this.#circuits.remove(id, true)
  }

  /** Another way between the same ends; where there is none, the circuit ends. */
  #reroute(circuit: Circuit): void {
    const { hosts, links } = this.#deps
    const { ends, path } = circuit
    const [start, goal] = [path.routerIds[0] ?? '', path.routerIds.at(-1) ?? '']
    const other = cheapestPaths(start, new Set([goal]), links, hosts).get(goal)
    if (other === undefined) {
      this.#circuits.remove(ends.id, true)
      return
    }
    this.#sendRoutes(ends, other)
    // @guard 50-reroute-keeps-the-old-path
    this.#circuits.move(circuit, other)
    this.#deps.publishFact?.(circuitFact(circuit, 'pathUpdated'))
    for (const id of path.routerIds) {
      if (other.routerIds.includes(id)) continue
      this.#deps.connection(id)?.channel.send(unrouteMessage(ends.id, true))
    }
  }
}
