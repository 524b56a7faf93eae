import { randomUUID } from 'node:crypto'

import { retainableBytes } from '../../channel/header-view.ts'
import { readInt32, readText } from '../../channel/headers.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { ServiceHost, HostLookup } from './host-lookup.ts'
import type { DialResult, ObservationSink } from '../../ports/observations.ts'
import type { LiveLinks } from '../../ports/live-table.ts'
import type { AdmittedClient } from '../../ports/router-clients.ts'
import {
  clientAccessFaultCodes,
  clientAccessRefusalMessage,
} from '../clients/client-access-faults.ts'
import type { MessageHandler, RouterConnection } from '../router-connection.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import { evaluateAgainBeforeRefusal } from '../evaluate-again-before-refusal.ts'
import { routerLimits } from '../limits.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import type { RouterLogger } from '../router-channels.ts'
import {
  admitDial,
  CircuitRefusedError,
  type DialChecks,
  NO_SERVICE_SESSION,
} from './admit-dial.ts'
import { CircuitRequestLimiter } from './circuit-request-limiter.ts'
import { chooseHost, type HostCandidate } from './choose-host.ts'
import { DialCosts } from './dial-costs.ts'
import {
  circuitResponseMessage,
  circuitRefusalMessage,
  type ClientCircuitRequest,
  type PeerData,
  readCircuitRequest,
} from '../../channel/messages/circuit-requests.ts'
import {
  failedDialResult,
  isUnknownHostFault,
  isHostRefusalFault,
  ROUTE_TIMEOUT_FAULT,
  NO_HOST_FAULT,
  parseRouteFault,
  type RouteFault,
  ROUTER_DISCONNECTED_FAULT,
} from './route-fault.ts'
import { type Circuit, circuitEventData, type CircuitTable } from './circuit-table.ts'
import { CircuitMaintenance } from './circuit-maintenance.ts'
import type { SharedCircuits } from './shared-circuits.ts'
import { cheapestPaths } from './path.ts'
import { peerDataForDialer, peerDataForHost } from './peer-data.ts'
import { type CircuitEndpointAddresses, buildRouteMessages } from './route.ts'
import { CircuitTraceLog } from './circuit-trace-log.ts'
import type { TracedIdentities } from './traced-identities.ts'
import { peerDataKey } from '../../channel/messages/peer-data.ts'
import {
  REROUTE_ATTEMPT,
  routeResultHeaderKey,
  unrouteMessage,
} from '../../channel/messages/circuits.ts'
import { CHANNEL_HEADERS_MAX } from '../../channel/numbers.ts'
import { edgeErrorCode } from '../../channel/messages/edge.ts'

const { circuitsUnknownMs, hostsAwaitedMax, hostsAwaitedMs, routeAttemptsMax, routeTimeoutMs } =
  routerLimits
/** Interval at which a dial that waits for a host checks for one. */
const AWAITED_STEP_MS = 500

/** Binding of terminators that a router's tunnel hosts. */
const TUNNEL = 'tunnel'
/**
 * At least 16 characters, so that a router cannot guess and use the future circuit IDs of other
 * routers.
 */
const CIRCUIT_ID = /^[A-Za-z0-9_-]{16,64}$/

export interface CircuitHandlerDeps extends DialChecks {
  readonly table: CircuitTable
  readonly hosts: HostLookup
  readonly links: LiveLinks
  readonly connection: (routerId: string) => RouterConnection | undefined
  readonly clock: Clock
  /** Returns a random number, at least 0 and less than 1. */
  readonly draw: () => number
  readonly log: RouterLogger
  readonly publishFact?: ObservationSink
  /** Absent if identities are not traced. */
  readonly traces?: Pick<TracedIdentities, 'of' | 'sweep'>
  /** Absent: circuits are not shared with other controllers. */
  readonly shared?: SharedCircuits
  /** Called when the router of a terminator reports that it does not know the terminator. */
  readonly onInvalidHost?: (host: ServiceHost) => void
}

/**
 * One attempt to set up a path: the routers that have not answered yet, and the host's peer data.
 */
interface Attempt {
  readonly number: number
  /** Routers from the client to the host. */
  readonly routerIds: readonly string[]
  readonly missing: Set<string>
  readonly peerData: Map<number, Uint8Array>
  /**
   * Ends the attempt.
   * @param fault null if the path was set up.
   * @param isOfHost true if the terminator's router reported the fault or did not answer; the fault
   * then counts against the terminator.
   */
  readonly settle: (fault: RouteFault | null, isOfHost: boolean) => void
}

interface Lay {
  readonly sessionId: string
  readonly clientId: string
  /** The ingress router of the circuit. */
  readonly start: string
  /** True when the client lost the permission to dial while the circuit was being created. */
  isOver: boolean
}

interface AttemptTerms {
  readonly attempt: number
  readonly client: AdmittedClient
  readonly peerData: PeerData
  readonly trace: CircuitTraceLog | null
}

interface Attempted {
  readonly fault: RouteFault | null
  /** True if the fault counts against the terminator. */
  readonly isOfHost: boolean
  readonly peerData: PeerData
}

interface WantedWay {
  /** Circuit ID. */
  readonly id: string
  /** The ingress router of the circuit. */
  readonly start: string
  readonly instanceId: string
  readonly peerData: PeerData
}

interface WantedHost {
  readonly serviceId: string
  readonly instanceId: string
  /** ID of the client's previous terminator; '' if there is none. */
  readonly sticksTo: string
}

interface ChosenHost extends HostCandidate {
  /** True if the client should use the same terminator for its next dial. */
  readonly isSticky: boolean
}

interface Laid {
  readonly circuit: Circuit & { readonly hostId: string }
  readonly peerData: PeerData
}

/**
 * Creates circuits from clients to hosts. The controller that creates a circuit owns it; the other
 * controllers know it only from soft state. If the owner fails, the circuit continues, and another
 * controller becomes its owner.
 */
export class CircuitHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  /** Handles circuits after their creation. */
  readonly upkeep: CircuitMaintenance
  readonly #deps: CircuitHandlerDeps
  readonly #circuits: CircuitTable
  readonly #costs: DialCosts
  readonly #attempts = new Map<string, Attempt>()
  /** Circuits that are being created, by circuit ID. */
  readonly #lays = new Map<string, Lay>()
  readonly #allowance: CircuitRequestLimiter
  /** Limits the dials that wait for a host; clients share the limit fairly. */
  readonly #awaiting = new FairShare(hostsAwaitedMax)
  readonly #startedMs: number

  constructor(deps: CircuitHandlerDeps) {
    this.#deps = deps
    this.#startedMs = deps.clock.monotonicMs()
    this.#circuits = deps.table
    this.#allowance = new CircuitRequestLimiter(deps)
    this.#costs = new DialCosts(deps.clock, (id) => deps.table.openAt(id))
    this.upkeep = new CircuitMaintenance({
      ...deps,
      isGranted: (routerId, serviceId, type) =>
        deps.tunnels.judge({ routerId, type, service: { id: serviceId } }).ok,
      isLaid: (routerId, id) => this.#attempts.get(id)?.routerIds.includes(routerId) === true,
    })
    const onRequest: MessageHandler = (connection, message) => this.#onRequest(connection, message)
    this.handlers = new Map<number, MessageHandler>([
      [controlContentType.createCircuitV2, onRequest],
      [controlContentType.createCircuitV3, onRequest],
      [controlContentType.createCircuit, onRequest],
      [controlContentType.createTunnelCircuitV2, onRequest],
      [controlContentType.circuitRequest, onRequest],
      [
        controlContentType.routeResult,
        (connection, message) => this.#onRouteResult(connection, message),
      ],
      [
        controlContentType.circuitConfirmation,
        (connection, message) => this.upkeep.onConfirmation(connection, message),
      ],
    ])
  }

  /**
   * Additional costs of terminators, without those whose additional cost is 0, with OpenZiti's
   * field names.
   */
  costs(): readonly object[] {
    const ids = new Set([...this.#costs.failing(), ...this.#circuits.openTerminators()])
    return Array.from(ids, (terminatorId) => {
      const circuitCount = this.#circuits.openAt(terminatorId)
      const currentCost = this.#costs.of(terminatorId)
      const failureCost = this.#costs.ofFailures(terminatorId)
      return { terminatorId, circuitCount, failureCost, currentCost }
    })
  }

  /** Cost that this controller adds to the cost in the record of a terminator. */
  dialCost(terminatorId: string): number {
    return this.#costs.of(terminatorId)
  }

  onSweep(): void {
    this.upkeep.onSweep()
    this.#deps.traces?.sweep()
  }

  /** Ends the circuits of ended service sessions, including circuits that are being created. */
  onSessionsEnded(sessionIds: ReadonlySet<string>): void {
    for (const lay of this.#lays.values()) if (sessionIds.has(lay.sessionId)) lay.isOver = true
    this.upkeep.onSessionsEnded(sessionIds)
  }

  /**
   * Ends circuits of clients that begin at a router that the client may not use any more, and
   * cancels the creation of such circuits.
   */
  endAtForbidden(...[identityIds, mayUse]: Parameters<CircuitMaintenance['endAtForbidden']>): void {
    for (const lay of this.#lays.values()) {
      const isMeant =
        lay.sessionId !== NO_SERVICE_SESSION && identityIds?.has(lay.clientId) !== false
      // @guard access-that-stays-open--laid-at-a-router
      if (isMeant && !mayUse(lay.clientId, lay.start)) lay.isOver = true
    }
    this.upkeep.endAtForbidden(identityIds, mayUse)
  }

  async #onRequest(connection: RouterConnection, message: ChannelMessage): Promise<void> {
    const { router, channel } = connection
    if (connection.sendsBacklog) {
      // The client may have given up meanwhile, and a circuit without a client is harmful: a host
      // with version 1.6 or 1.7 of OpenZiti's Go SDK accepts no other connection until the client
      // starts the circuit, or until 3 minutes have passed.
      const text = 'the request waited too long at the router'
      this.#refuse(connection, message, new CircuitRefusedError(edgeErrorCode.internal, text))
      return
    }
    try {
      this.#allowance.begin(router.id)
    } catch (error) {
      this.#refuse(connection, message, error)
      return
    }
    try {
      const { circuit, peerData } = await this.#make(connection, message)
      const { live, ends } = circuit
      const tags = { serviceId: live.serviceId, clientId: live.clientId, hostId: circuit.hostId }
      const isSent = channel.reply(
        message,
        circuitResponseMessage(message, {
          circuitId: ends.id,
          ingressAddress: ends.ingress,
          peerData,
          tags,
        }),
      )
      if (!isSent) this.#circuits.remove(ends.id, true)
    } catch (error) {
      this.#refuse(connection, message, error)
    } finally {
      this.#allowance.end(router.id)
    }
  }

  #refuse({ router, channel }: RouterConnection, message: ChannelMessage, error: unknown): void {
    const isKnown = error instanceof CircuitRefusedError
    if (!isKnown) {
      const reason = errorMessage(error)
      this.#deps.log.warn({ routerId: router.id, reason }, 'a circuit could not be made')
    }
    const text = isKnown ? error.message : 'the circuit could not be made'
    channel.reply(
      message,
      circuitRefusalMessage(message, isKnown ? error.code : edgeErrorCode.internal, text),
    )
  }

  /** Creates a circuit for a router's request. @throws {CircuitRefusedError} */
  async #make(connection: RouterConnection, message: ChannelMessage): Promise<Laid> {
    const { router } = connection
    const asked = readCircuitRequest(message)
    if (asked === null)
      throw new CircuitRefusedError(edgeErrorCode.internal, 'the request is malformed')
    const { client, isGranted } = await admitDial(this.#deps, connection, asked)
    this.#allowance.admit(router.id, client)
    const id = asked.of === 'client' ? this.#idFor(asked) : newCircuitId()
    const { sessionId, identityId: clientId } = client
    const lay = { sessionId, clientId, start: router.id, isOver: false }
    this.#lays.set(id, lay)
    try {
      const laid = await this.#lay({ ...asked, id, start: router.id }, client)
      // @guard access-that-stays-open--laying, tunnels-of-routers--laying
      if (!lay.isOver && isGranted()) return laid
      this.#circuits.remove(laid.circuit.ends.id, true)
      throw rightEnded()
    } finally {
      this.#lays.delete(id)
    }
  }

  /**
   * The circuit ID that the router sent, or a new ID. An ID in use is refused, because routers
   * would treat a second circuit with the same ID as a reroute of the first one.
   * @throws {CircuitRefusedError}
   */
  #idFor({ circuitId: id = newCircuitId() }: ClientCircuitRequest): string {
    if (!CIRCUIT_ID.test(id))
      throw new CircuitRefusedError(edgeErrorCode.internal, 'the circuit id is malformed')
    // @guard circuit-of-a-taken-id--laid, circuit-of-a-taken-id--open
    const isOwn = this.#lays.has(id) || this.#circuits.kept(id) !== undefined
    // @guard circuit-of-a-taken-id--elsewhere
    if (isOwn || this.#deps.shared?.isKnown(id) === true) {
      throw new CircuitRefusedError(edgeErrorCode.internal, 'a circuit has that id already')
    }
    return id
  }

  async #lay(
    { id, start, instanceId, peerData }: WantedWay,
    client: AdmittedClient,
  ): Promise<Laid> {
    const failed = new Map<string, RouteFault>()
    const trace = this.#traceOf(id, client)
    let [lastFault, lastTried] = [NO_HOST_FAULT, '']
    const beganMs = this.#deps.clock.monotonicMs()
    const layMs = (): number => this.#deps.clock.monotonicMs() - beganMs
    for (let attempt = 0; attempt < routeAttemptsMax; attempt += 1) {
      const sticksTo = Buffer.from(peerData.get(peerDataKey.stickinessToken) ?? []).toString('utf8')
      const wanted = { serviceId: client.serviceId, instanceId, sticksTo }
      const choose = (): ChosenHost | null => this.#choose(start, wanted, failed)
      const chosen = attempt === 0 ? await this.#awaited(id, choose, wanted) : choose()
      trace?.onChosen(attempt, chosen)
      if (chosen === null) break
      const { host, path, isSticky } = chosen
      const ends = { id, ingress: newAddress(), egress: newAddress() }
      const laid = await this.#attempt(ends, chosen, { attempt, client, peerData, trace })
      trace?.onAttempted(attempt, laid.fault)
      if (laid.fault === null) {
        const named = { clientId: client.identityId, serviceId: client.serviceId }
        const circuit = {
          ends,
          path,
          hostId: host.hostId,
          instanceId,
          isOfTunnel: client.sessionId === NO_SERVICE_SESSION,
          isHostedByTunnel: host.isMadeByRouter && host.binding === TUNNEL,
          turn: 0,
          live: {
            ...named,
            sessionId: client.sessionId,
            terminatorId: host.terminatorId,
            createdAt: this.#deps.clock.nowMs(),
          },
        }
        if (!this.#circuits.set(id, circuit)) {
          this.#send(path.routerIds, unrouteMessage(id, true))
          throw new CircuitRefusedError(edgeErrorCode.internal, 'too many circuits')
        }
        this.#costs.succeeded(host.terminatorId)
        this.#publishDial(client, host.terminatorId, 'success')
        this.#deps.publishFact?.(circuitEventData(circuit, 'created', layMs()))
        const dialerPeerData = peerDataForDialer([...host.peerData, ...laid.peerData])
        if (isSticky)
          dialerPeerData.set(peerDataKey.stickinessToken, Buffer.from(host.terminatorId))
        return { circuit, peerData: dialerPeerData }
      }
      this.#publishDial(client, host.terminatorId, failedDialResult(laid.fault))
      if (laid.isOfHost) this.#onHostFailed(host, laid.fault)
      lastFault = laid.fault
      lastTried = host.terminatorId
      failed.set(host.terminatorId, laid.fault)
    }
    this.#publishDial(client, lastTried, 'fail')
    this.#deps.publishFact?.({
      kind: 'circuitFailed',
      circuitId: id,
      clientId: client.identityId,
      sessionId: client.sessionId,
      instanceId,
      serviceId: client.serviceId,
      cause: lastFault.cause,
      layMs: layMs(),
    })
    throw new CircuitRefusedError(edgeErrorCode.invalidTerminator, lastFault.text)
  }

  /**
   * Chooses a host; soon after the start, waits for one that can be reached. A restarted controller
   * knows the hosts of a service before their routers have reconnected and reported links.
   * @throws {CircuitRefusedError} when the client loses the permission to dial.
   */
  async #awaited(
    id: string,
    choose: () => ChosenHost | null,
    wanted: WantedHost,
  ): Promise<ChosenHost | null> {
    const { reads } = this.#deps
    const chosen = await evaluateAgainBeforeRefusal(reads, choose, (host) => host === null)
    const { clientId = '', start = '' } = this.#lays.get(id) ?? {}
    if (chosen !== null || !this.#awaiting.hasRoomFor(clientId)) return chosen
    this.#awaiting.take(clientId)
    try {
      for (let waitedMs = 0; waitedMs < hostsAwaitedMs; waitedMs += AWAITED_STEP_MS) {
        const isThere = this.#deps.connection(start) !== undefined
        if (!isThere || !this.#mayComeBack(wanted)) return null
        await new Promise((go) => setTimeout(go, AWAITED_STEP_MS))
        if (this.#lays.get(id)?.isOver === true) throw rightEnded()
        const host = choose()
        if (host !== null) return host
      }
      return null
    } finally {
      this.#awaiting.giveBack(clientId)
    }
  }

  #mayComeBack({ serviceId, instanceId }: WantedHost): boolean {
    const { clock, hosts } = this.#deps
    if (clock.monotonicMs() - this.#startedMs >= circuitsUnknownMs) return false
    const known = hosts.service(serviceId)?.hosts ?? []
    return known.some((host) => host.instanceId === instanceId)
  }

  #traceOf(circuitId: string, client: AdmittedClient): CircuitTraceLog | null {
    const { traces, log } = this.#deps
    const trace = traces?.of(client.identityId) ?? null
    return trace === null ? null : new CircuitTraceLog({ log, trace, circuitId, client })
  }

  #publishDial({ serviceId }: AdmittedClient, terminatorId: string, result: DialResult): void {
    this.#deps.publishFact?.({ kind: 'dial', serviceId, terminatorId, result })
  }

  #onHostFailed(host: ServiceHost, fault: RouteFault): void {
    this.#costs.failed(host.terminatorId)
    if (isUnknownHostFault(fault)) this.#deps.onInvalidHost?.(host)
  }

  #choose(
    start: string,
    { serviceId, instanceId, sticksTo }: WantedHost,
    failed: ReadonlyMap<string, RouteFault>,
  ): ChosenHost | null {
    const { hosts, links, connection, draw } = this.#deps
    const service = hosts.service(serviceId)
    if (service === undefined) return null
    const there = service.hosts.filter(
      (host) => host.instanceId === instanceId && connection(host.routerId) !== undefined,
    )
    // If every host has failed, tries those again that did not refuse: the path may have been the
    // cause.
    const fresh = there.filter(({ terminatorId }) => !failed.has(terminatorId))
    const isOpen = ({ terminatorId }: ServiceHost): boolean => {
      const fault = failed.get(terminatorId)
      return fault === undefined || !isHostRefusalFault(fault)
    }
    const usable = fresh.length > 0 ? fresh : there.filter(isOpen)
    const goals = new Set(usable.map(({ routerId }) => routerId))
    const paths = cheapestPaths(start, goals, links, hosts)
    const candidates = usable.flatMap((host): HostCandidate[] => {
      const path = paths.get(host.routerId)
      return path === undefined ? [] : [{ host, path }]
    })
    const { strategy } = service
    const costAt = (id: string): number => this.#costs.of(id)
    const chosen = chooseHost(candidates, { strategy, drawn: draw(), sticksTo, costAt })
    return chosen === null ? null : { ...chosen, isSticky: strategy === 'sticky' }
  }

  async #attempt(
    ends: CircuitEndpointAddresses,
    { host, path }: HostCandidate,
    { attempt, client, peerData, trace }: AttemptTerms,
  ): Promise<Attempted> {
    const tags = { serviceId: client.serviceId, clientId: client.identityId, hostId: host.hostId }
    const { binding, address } = host
    // @guard peer-data-of-others--dialer
    const dial = { binding, address, peerData: peerDataForHost(peerData, client) }
    const traced = trace === null ? {} : { trace: trace.ofRoutes }
    const terms = { attempt, timeoutMs: routeTimeoutMs, tags, dial, ...traced }
    const routes = buildRouteMessages(ends, path, terms)
    const { promise, resolve } = Promise.withResolvers<Omit<Attempted, 'peerData'>>()
    const settle: Attempt['settle'] = (fault, isOfHost) => resolve({ fault, isOfHost })
    const made: Attempt = {
      number: attempt,
      routerIds: path.routerIds,
      missing: new Set(path.routerIds),
      peerData: new Map(),
      settle,
    }
    this.#attempts.set(ends.id, made)
    // A timeout counts against the host only if its own router has not answered.
    const onTimeout = (): void => settle(ROUTE_TIMEOUT_FAULT, made.missing.has(host.routerId))
    const timer = setTimeout(onTimeout, routeTimeoutMs)
    for (const [at, routerId] of path.routerIds.entries()) {
      const route = routes[at]
      const connection = this.#deps.connection(routerId)
      if (route === undefined || connection === undefined) settle(ROUTER_DISCONNECTED_FAULT, false)
      else connection.channel.send(route)
    }
    const { fault, isOfHost } = await promise
    clearTimeout(timer)
    this.#attempts.delete(ends.id)
    if (fault !== null) this.#send(made.routerIds, unrouteMessage(ends.id, true))
    return { fault, isOfHost, peerData: made.peerData }
  }

  #onRouteResult({ router, channel }: RouterConnection, { headers, body }: ChannelMessage): void {
    const id = Buffer.from(body).toString('utf8')
    const number = readInt32(headers, routeResultHeaderKey.attempt)
    if (number === REROUTE_ATTEMPT) {
      const code = headers.get(routeResultHeaderKey.errorCode)?.[0] ?? 0
      if (!headers.has(routeResultHeaderKey.success)) this.upkeep.onNotRerouted(router.id, id, code)
      return
    }
    const attempt = this.#attempts.get(id)
    // @guard circuits-of-others--answer
    if (attempt?.number !== number || !attempt.missing.has(router.id)) {
      // The reply may belong to an attempt that has ended. The router must drop the circuit only if
      // no later attempt and no established circuit uses this router.
      const isLaid = attempt?.routerIds.includes(router.id) === true
      if (!isLaid && this.upkeep.carriedBy(router.id, id) === undefined) {
        channel.send(unrouteMessage(id, true))
      }
      return
    }
    // @guard circuits-of-others--key
    const isOfHost = attempt.routerIds.at(-1) === router.id
    if (!headers.has(routeResultHeaderKey.success)) {
      const fault = parseRouteFault(
        readText(headers, routeResultHeaderKey.error),
        headers.get(routeResultHeaderKey.errorCode),
      )
      // @guard circuits-of-others--invalid
      attempt.settle(fault, isOfHost)
      return
    }
    // Accepts peer data only from the host's router: it contains the host's key, and an
    // intermediate router could substitute its own key.
    for (const [key, value] of isOfHost ? headers : []) {
      const isOfChannel = key <= CHANNEL_HEADERS_MAX
      const isResult = key >= routeResultHeaderKey.attempt && key <= routeResultHeaderKey.errorCode
      if (!isOfChannel && !isResult) attempt.peerData.set(key, retainableBytes(value))
    }
    attempt.missing.delete(router.id)
    if (attempt.missing.size === 0) attempt.settle(null, false)
  }

  #send(routerIds: readonly string[], message: ReturnType<typeof unrouteMessage>): void {
    for (const id of routerIds) this.#deps.connection(id)?.channel.send(message)
  }
}

function rightEnded(): CircuitRefusedError {
  return new CircuitRefusedError(
    clientAccessFaultCodes.session,
    clientAccessRefusalMessage('dial', 'session'),
  )
}

function newCircuitId(): string {
  return randomUUID()
}

/**
 * Unique among the circuit endpoints of a router, regardless of the controller that created them.
 */
function newAddress(): string {
  return randomUUID()
}
