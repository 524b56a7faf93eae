import {
  CircuitConfirmationSchema,
  type Fault,
  FaultSubject,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import { decodeIncrementally } from '../../channel/wire-scan.ts'
import type { ObservationSink } from '../../ports/observations.ts'
import type { DialedLinkIds, LiveLink, LiveLinks, PathLink } from '../../ports/live-table.ts'
import type { RouterConnection } from '../router-connection.ts'
import { routerLimits } from '../limits.ts'
import { type Circuit, circuitEventData, type CircuitTable } from './circuit-table.ts'
import type { HostLookup } from './host-lookup.ts'
import { isCircuitId, iterateDistinctWords } from './circuit-ids.ts'
import { type CircuitPath, cheapestPaths } from './path.ts'
import { type CircuitEndpointAddresses, buildRouteMessages } from './route.ts'
import type { SharedCircuits } from './shared-circuits.ts'
import { REROUTE_ATTEMPT, unrouteMessage } from '../../channel/messages/circuits.ts'
import type { TunnelAccessCheck } from '../clients/tunnel-handler.ts'

const NS_PER_MS = 1_000_000n
/** Maximum number of circuits that are checked before other work runs. */
const SLICE = 1000
/**
 * Error code of a router that has lost a link of the path; the router also reports the lost link.
 */
const INVALID_LINK = 8
const REROUTE_TERMS = {
  attempt: REROUTE_ATTEMPT,
  timeoutMs: routerLimits.routeTimeoutMs,
  tags: {},
  dial: null,
}

export interface CircuitMaintenanceDeps {
  readonly table: CircuitTable
  readonly hosts: HostLookup
  readonly links: LiveLinks
  readonly connection: (routerId: string) => RouterConnection | undefined
  readonly publishFact?: ObservationSink
  /** Returns whether a path of this circuit through this router is being set up. */
  readonly isLaid: (routerId: string, circuitId: string) => boolean
  /** Absent: circuits are not shared with other controllers. */
  readonly shared?: SharedCircuits
  readonly isGranted: TunnelAccessCheck
  readonly clock: Clock
}

/**
 * Reroutes, confirms and ends established circuits. Ends those that are no longer permitted or have
 * no path.
 */
export class CircuitMaintenance {
  readonly #deps: CircuitMaintenanceDeps
  readonly #circuits: CircuitTable
  /**
   * Connections over which this controller has sent the routes again, which it does once for each
   * connection.
   */
  readonly #routedAgain = new WeakSet<RouterConnection>()
  readonly #startedMs: number

  constructor(deps: CircuitMaintenanceDeps) {
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

  /**
   * Called when this controller has become the owner of a circuit. Ends the circuit if its session
   * has ended or a tunnel may no longer use it, reroutes it if its path is broken, and otherwise
   * sends the routes of the path again.
   */
  #onTakenOver(circuit: Circuit): void {
    const { shared, links, isGranted } = this.#deps
    const { ends, path } = circuit
    // @guard circuits-taken-over--tunnel
    if (shared?.isOver(circuit) === true || this.#isUngranted(circuit, isGranted)) {
      this.#circuits.remove(ends.id, true)
    } else if (path.links.some((link) => links.isLost(link))) this.#reroute(circuit)
    else this.#sendRoutes(ends, path)
  }

  /** Sends the routes to those routers on the path that are connected to this controller. */
  #sendRoutes(ends: CircuitEndpointAddresses, path: CircuitPath): void {
    for (const [at, route] of buildRouteMessages(ends, path, REROUTE_TERMS).entries()) {
      this.#deps.connection(path.routerIds[at] ?? '')?.channel.send(route)
    }
  }

  /**
   * Called when a router asks whether its idle circuits still exist; makes it drop those that do
   * not.
   */
  *onConfirmation(
    { router, channel }: RouterConnection,
    { body }: ChannelMessage,
  ): Generator<void, void> {
    const { circuitIds, idleTimes } = yield* decodeIncrementally(CircuitConfirmationSchema, body)
    // No controller knows a circuit that ended while the router was disconnected, or that no other
    // controller took over when its owner failed. The router must drop such a circuit.
    for (const id of circuitIds) {
      const idleNs = Object.hasOwn(idleTimes, id) ? (idleTimes[id] ?? 0n) : 0n
      const circuit = this.#answeredFor(router.id, id)
      if (circuit === undefined) this.#unroute(channel, router.id, id)
      else this.#endIdle(circuit, router.id, Number(idleNs / NS_PER_MS))
      yield
    }
  }

  /**
   * Ends a circuit that was idle for too long. Only the ingress and egress routers know how long: a
   * reroute may have removed an intermediate router from the path.
   */
  #endIdle({ ends, path, live }: Circuit, routerId: string, idleMs: number): void {
    const { routerIds } = path
    if (routerId !== routerIds[0] && routerId !== routerIds.at(-1)) return
    const maxMs = this.#deps.hosts.service(live.serviceId)?.maxIdleTimeMs ?? 0
    if (maxMs > 0 && idleMs >= maxMs) this.#circuits.remove(ends.id)
  }

  /**
   * Makes a router drop a circuit that no controller knows, because the router would keep the
   * circuit and report it again.
   */
  #unroute(channel: RouterConnection['channel'], routerId: string, id: string): void {
    const { clock, isLaid } = this.#deps
    if (!isCircuitId(id) || isLaid(routerId, id)) return
    // False shortly after the start, because other controllers may not have sent their circuits to
    // this one yet.
    const hasHeard = clock.monotonicMs() - this.#startedMs >= routerLimits.circuitsUnknownMs
    // @guard 48-circuit-of-nobody-is-left-at-its-router
    if (this.#deps.shared === undefined || hasHeard) channel.send(unrouteMessage(id, true))
  }

  /**
   * The circuit that a router reports about, if this controller owns it or can become its owner.
   * The second case occurs, for example, when another controller became the owner while this
   * controller restarted.
   */
  #answeredFor(routerId: string, id: string, hasEnded = false): Circuit | undefined {
    return this.carriedBy(routerId, id) ?? this.#deps.shared?.claim(routerId, id, hasEnded)
  }

  /**
   * The circuit, if the router is on its path; otherwise undefined, so that a router cannot find
   * out whether other circuits exist.
   */
  carriedBy(routerId: string, id: string): Circuit | undefined {
    const circuit = this.#circuits.kept(id)
    // @guard circuits-of-others--carried
    return circuit?.path.routerIds.includes(routerId) === true ? circuit : undefined
  }

  /**
   * Handles a router's fault report: an endpoint of a circuit has closed, the router cannot forward
   * frames of circuits, or it has lost a link that is not in the link table but part of circuits.
   */
  *onFault({ router, channel }: RouterConnection, fault: Fault): Generator<void, void> {
    const { subject, id, iteration } = fault
    if (subject === FaultSubject.INGRESS || subject === FaultSubject.EGRESS) {
      // @guard circuits-of-others--ends
      const isKnown = this.#answeredFor(router.id, id, true) !== undefined
      // @guard 49-fault-of-an-end-is-ignored
      if (isKnown) this.#circuits.remove(id)
      else this.#unroute(channel, router.id, id)
    } else if (subject === FaultSubject.FORWARD || subject === FaultSubject.UNKNOWN_OWNER_FORWARD) {
      // With `UNKNOWN_OWNER_FORWARD`, the router does not know the owner of the circuit. Another
      // controller may own the circuit, so this controller must not end it.
      const isOwned = subject === FaultSubject.FORWARD
      for (const each of iterateDistinctWords(id)) {
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
   * Reroutes circuits over links that the router no longer reports. The link table removed the
   * router's links when its previous channel closed, but the paths of circuits still contain them.
   */
  *onLinksReported(sourceRouterId: string, ids: DialedLinkIds): Generator<void, void> {
    yield* this.#rerouteFrom((link) => link.sourceRouterId === sourceRouterId && !ids.has(link.id))
    const connection = this.#deps.connection(sourceRouterId)
    if (connection === undefined || this.#routedAgain.has(connection)) return
    this.#routedAgain.add(connection)
    // @guard 51-router-that-comes-back-is-not-routed-again
    yield* this.#routeAgain(connection)
  }

  /**
   * Sends routes to a reconnected router again, because messages on its previous channel may have
   * been lost. A router that has restarted has lost its circuit endpoints, so it refuses the routes
   * of circuits that begin or end there.
   */
  *#routeAgain({ router, channel }: RouterConnection): Generator<void, void> {
    let looked = 0
    for (const { ends, path } of Array.from(this.#circuits.allKept())) {
      looked += 1
      if (looked % SLICE === 0) yield
      const at = path.routerIds.indexOf(router.id)
      const route = at < 0 ? undefined : buildRouteMessages(ends, path, REROUTE_TERMS)[at]
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
   * Ends circuits of clients that begin at a router that the client may no longer use.
   * @param identityIds clients that may have lost a router; null: any client.
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

  /** Ends circuits that a router's tunnel may no longer dial or host. */
  endUngranted(isGranted: TunnelAccessCheck): void {
    const judged = new Map<string, boolean>()
    const isAllowed = (...[routerId, serviceId, type]: Parameters<TunnelAccessCheck>): boolean => {
      const key = `${type} ${routerId} ${serviceId}`
      const known = judged.get(key) ?? isGranted(routerId, serviceId, type)
      judged.set(key, known)
      return known
    }
    for (const circuit of Array.from(this.#circuits.allKept())) {
      if (this.#isUngranted(circuit, isAllowed)) this.#circuits.remove(circuit.ends.id, true)
    }
  }

  #isUngranted(circuit: Circuit, isGranted: TunnelAccessCheck): boolean {
    const { live, hostId, isOfTunnel, isHostedByTunnel } = circuit
    const { clientId, serviceId } = live
    // @guard tunnels-of-routers--dialed, tunnels-of-routers--hosted
    return (
      (isOfTunnel && !isGranted(clientId, serviceId, 'Dial')) ||
      (isHostedByTunnel && !isGranted(hostId, serviceId, 'Bind'))
    )
  }

  /**
   * Called when a router refused a reroute. Ends the circuit, unless the router refused because it
   * does not have the link.
   */
  onNotRerouted(routerId: string, id: string, errorCode: number): void {
    if (errorCode === INVALID_LINK) return
    if (this.carriedBy(routerId, id) !== undefined) this.#circuits.remove(id, true)
  }

  /**
   * Moves the circuit to the cheapest path between its endpoints, which may be the present one;
   * ends the circuit if there is no path.
   */
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
    this.#deps.publishFact?.(circuitEventData(circuit, 'pathUpdated'))
    for (const id of path.routerIds) {
      if (other.routerIds.includes(id)) continue
      this.#deps.connection(id)?.channel.send(unrouteMessage(ends.id, true))
    }
  }
}
