import { randomInt } from 'node:crypto'
import type { Server, TLSSocket } from 'node:tls'

import { peerCertificateChain } from '../../api/http/transport/peer-certificate-chain.ts'
import { clientAddress } from '../../lib/bounds/client-address.ts'
import { listenerTlsOptions } from '../../api/http/transport/tls.ts'
import { CertificateAdoption } from '../../auth/certificates/certificate-adoption.ts'
import type { ClusterNode } from '../../cluster/cluster-node.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import type { StateMachine } from '../../fsm/state-machine.ts'
import { assert } from '../../lib/assert.ts'
import { clientSocketShare } from '../../lib/bounds/file-descriptors.ts'
import { systemClock } from '../../lib/clock.ts'
import type { ProcessorShare } from '../../lib/bounds/processor-share.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import type { MemberView } from '../../ports/cluster-view.ts'
import type { RouterCertifier } from '../../ports/certificate-issuer.ts'
import type { ObservationSink } from '../../ports/observations.ts'
import type { LiveTable, LiveChannel, LiveLink } from '../../ports/live-table.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'
import type { RouterClients } from '../../ports/router-clients.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { HostedTerminators } from '../../ports/hosted-terminators.ts'
import type { RouterTunnels } from '../../ports/router-tunnels.ts'
import type { RouterInspections } from '../../ports/router-inspections.ts'
import type { ControllerIdentity } from '../../fabric/hello-response.ts'
import {
  createCertificateHandler,
  type PrecheckingProposer,
} from '../../fabric/certificate-handler.ts'
import { CircuitHandler } from '../../fabric/circuits/circuit-handler.ts'
import {
  circuitEventData,
  createCircuitTable,
  type CircuitTable,
} from '../../fabric/circuits/circuit-table.ts'
import { UnknownTerminatorHandler } from '../../fabric/circuits/unknown-terminator-handler.ts'
import { TracedIdentities } from '../../fabric/circuits/traced-identities.ts'
import { SharedCircuits } from '../../fabric/circuits/shared-circuits.ts'
import { AlertHandler } from '../../fabric/alert-handler.ts'
import { ConnectionHandler } from '../../fabric/clients/connection-handler.ts'
import { EndedAccessSweeper } from '../../fabric/clients/ended-access-sweeper.ts'
import { RouterTerminatorWriter } from '../../fabric/clients/router-terminator-writer.ts'
import { SessionHandler } from '../../fabric/clients/session-handler.ts'
import { endUnauthorizedHosting } from '../../fabric/clients/ended-sessions.ts'
import { PresentedSessionTokens } from '../../fabric/clients/presented-session-tokens.ts'
import { RouterTerminatorValidator } from '../../fabric/clients/router-terminator-validator.ts'
import { PostureHandler } from '../../fabric/clients/posture-handler.ts'
import { TerminatorHandler } from '../../fabric/clients/terminator-handler.ts'
import { TunnelHandler } from '../../fabric/clients/tunnel-handler.ts'
import { UnknownHostHandler } from '../../fabric/clients/unknown-host-handler.ts'
import type { RouterConnection } from '../../fabric/router-connection.ts'
import { resolveBindAddresses, isPortSharedWithRouters } from './ports.ts'
import { CONTROL_PROTOCOL } from '../../channel/messages/control.ts'
import { createRouterAdmitter } from './router-admitter.ts'
import { createOwnInspections } from './own-inspections.ts'
import { createRouterInspections } from '../../fabric/inspections.ts'
import { createLinkHandler, closeLinkMessage } from '../../fabric/links/link-handler.ts'
import { LinkTable } from '../../fabric/links/link-table.ts'
import { RouterPeersHandler } from '../../fabric/links/router-peers-handler.ts'
import { ModelHandler } from '../../fabric/model/model-handler.ts'
import { type CertificateAndKey, RouterListener } from '../../fabric/router-listener.ts'
import {
  RouterChannels,
  type RouterLogger,
  type RouterClusterView,
} from '../../fabric/router-channels.ts'
import { perRouterRateLimitedLogger } from '../../fabric/rate-limited-router-log.ts'
import { RouterPresenceLog } from '../../fabric/router-presence-log.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { Router } from '../../entities/kinds/router.ts'
import { RouterStatusTopic } from '../../fabric/router-status-topic.ts'
import type { ListeningTlsServer } from '../../overlay/sockets/shared-tls-port.ts'
import type { TlsPortOpener } from '../../overlay/sockets/tls-port-opener.ts'
import { OPENZITI_API_VERSION, programBuildDate, programRevision } from '../version.ts'
import type { Terminator } from '../../entities/kinds/terminator.ts'
import type { ServiceHost, HostedService, HostLookup } from '../../fabric/circuits/host-lookup.ts'

interface RouterDeps {
  readonly config: ControllerConfig
  readonly clusterNode: ClusterNode
  readonly machine: StateMachine
  readonly authorities: NetworkAuthorities
  readonly log: RouterLogger
  readonly processor: ProcessorShare
  /** True while this controller must not answer from its state; it then admits no router. */
  readonly isOutOfService: () => boolean
  /** False until a joining controller has received the state. */
  readonly isReady: () => boolean
  /** True if the cluster continues without this controller. */
  readonly isOusted: () => boolean
  /** Receives events about routers. */
  readonly publishFact: ObservationSink
}

/** Components that decide about the clients and tunnels of routers. */
interface ServedByRouters {
  /** Reaches the latest committed state, with which a refusal is checked again. */
  readonly reads: Pick<LatestReads, 'reachLatest'>
  readonly clients: RouterClients
  readonly tunnels: RouterTunnels
  readonly terminators: HostedTerminators
}

const DRAWS = 2 ** 32

/**
 * Router service of a controller: the channels of connected routers and their live data. Every
 * controller shows which routers are connected, even if it does not listen for routers.
 */
export class RouterService {
  readonly links: LinkTable
  readonly circuits: CircuitTable
  readonly inspections: RouterInspections
  readonly traces: TracedIdentities
  readonly #deps: RouterDeps
  readonly #log: RouterLogger
  readonly #channels: RouterChannels
  readonly #statuses: RouterStatusTopic
  #stopPresenceLog: () => void = () => undefined
  #listener: RouterListener | null = null
  #circuitHandler: CircuitHandler | null = null
  #validation: RouterTerminatorValidator | null = null
  #peers: RouterPeersHandler | null = null
  #connected: ConnectionHandler | null = null
  #adoption: CertificateAdoption | null = null

  constructor(deps: RouterDeps) {
    this.#deps = deps
    const { config, clusterNode, machine, processor } = deps
    const log = perRouterRateLimitedLogger(deps.log, systemClock)
    this.#log = log
    const statuses = new RouterStatusTopic(config.id, clusterNode.soft.open('routers'), systemClock)
    machine.routers = statuses
    this.#statuses = statuses
    const channels = new RouterChannels({
      statuses,
      log,
      processor,
      clock: systemClock,
      feed: machine,
      publishFact: deps.publishFact,
      identity: identityOf(config.id, clusterNode.clusterId),
      gate: createRouterAdmitter(deps),
      cluster: createRouterCluster(clusterNode, deps.isOusted),
    })
    this.#channels = channels
    const topic = clusterNode.soft.open('traces')
    this.traces = new TracedIdentities({ selfId: config.id, topic, clock: systemClock })
    this.circuits = createCircuitTable(
      config.id,
      (id, message) => channels.connection(id)?.channel.send(message),
      (circuit) => deps.publishFact(circuitEventData(circuit, 'deleted')),
    )
    this.links = new LinkTable({
      owner: config.id,
      isConnected: (id) => channels.connection(id) !== undefined,
      isBarred: (id) => {
        const router = machine.get('router', id)
        return router !== undefined && (router.disabled || !router.isVerified)
      },
      sendGone: (id, link) => channels.connection(id)?.channel.send(closeLinkMessage(link)),
      onSeen: (link, type) =>
        deps.publishFact({ kind: 'link', type: seenType(channels, link, type), link }),
      onGone: (link) => {
        deps.publishFact({ kind: 'link', type: 'fault', link })
        this.#circuitHandler?.upkeep.onLinkGone(link)
      },
    })
    this.inspections = {
      ...createRouterInspections(channels),
      own: createOwnInspections({
        config,
        model: machine.routerModel,
        timelineId: () => `${clusterNode.clusterId}:${clusterNode.generation}`,
        connections: () => channels.connections(),
        circuits: () => this.#circuitHandler,
        peers: () => this.#peers,
        validation: () => this.#validation,
        clients: () => this.#connected,
      }),
      terminators: async (routerId, asked, isFixing) => {
        const connection = channels.connection(routerId)
        if (connection === undefined) return null
        return (await this.#validation?.look(connection, asked, isFixing)) ?? null
      },
    }
    if (config.routers.bind === null) return
    const connections = (): Iterable<RouterConnection> => channels.connections()
    this.#peers = new RouterPeersHandler({ routerIds: () => enabledRouters(machine), connections })
    channels.add(this.#peers)
    const isCertificateOf = certificateJudge(machine)
    channels.add(
      createLinkHandler({
        table: this.links,
        log,
        isCertificateOf,
        onMetrics: (metrics) => deps.publishFact({ kind: 'routerMetrics', metrics }),
        onOtherFault: (connection, fault) =>
          this.#circuitHandler?.upkeep.onFault(connection, fault),
        onLinksReported: (routerId, ids) =>
          this.#circuitHandler?.upkeep.onLinksReported(routerId, ids),
      }),
    )
    const connected = (this.#connected = new ConnectionHandler(deps.publishFact))
    channels.add(connected)
    channels.add(new AlertHandler(deps.publishFact, log))
    statuses.dialCost = (terminatorId) => this.#circuitHandler?.dialCost(terminatorId) ?? 0
    statuses.connections = (id) => {
      for (const { router } of connections()) if (router.isEdge) return connected.isConnected(id)
      return null
    }
    channels.add(
      new ModelHandler({
        connections,
        log,
        clock: systemClock,
        model: machine.routerModel,
        timelineId: () => `${clusterNode.clusterId}:${clusterNode.generation}`,
        isLeader: () => clusterNode.leaderId() === clusterNode.selfId,
        certificates: () => ({
          controllers: clusterNode.members().map(({ certificatePem }) => certificatePem),
          anchors: [deps.authorities.anchorsPem()],
        }),
      }),
    )
  }

  /** Must be called before `open`. The same rules apply to clients of routers and of the API. */
  serve(
    { clients, tunnels, terminators, reads }: ServedByRouters,
    certifier: RouterCertifier,
    proposer: PrecheckingProposer,
  ): void {
    const { authorities, config, clusterNode, machine } = this.#deps
    const log = this.#log
    const isLeader = (): boolean => clusterNode.leaderId() === clusterNode.selfId
    this.#stopPresenceLog = this.#logPresence(proposer, isLeader)
    if (config.routers.bind === null) return
    this.#adoption = new CertificateAdoption({
      authorities,
      proposer,
      state: machine,
      cluster: clusterNode,
      clock: systemClock,
    })
    const channels = this.#channels
    const shown = new PresentedSessionTokens(clients, reads, systemClock)
    channels.add(
      new SessionHandler({
        clients,
        shown,
        clock: systemClock,
        onEnded: (sessionIds) => this.#circuitHandler?.onSessionsEnded(sessionIds),
        isLeader,
        connections: () => channels.connections(),
      }),
    )
    const writes = new RouterTerminatorWriter({ proposer, log })
    channels.add(new TerminatorHandler({ clients: shown, writes }))
    channels.add(new PostureHandler({ clients: shown, log }))
    this.#validation = new RouterTerminatorValidator({
      terminators,
      writes,
      isLeader,
      log,
      clock: systemClock,
    })
    channels.add(this.#validation)
    const { inspect } = this.inspections
    channels.add(new UnknownHostHandler({ terminators, inspect, isLeader, log }))
    channels.add(
      new EndedAccessSweeper({
        terminators,
        proposer,
        isLeader,
        log,
        endHosting: (terminator) =>
          endUnauthorizedHosting(channels.connection(terminator.routerId), shown, terminator),
        endCircuits: (identityIds, mayUse) =>
          this.#circuitHandler?.endAtForbidden(identityIds, mayUse),
      }),
    )
    channels.add(
      new TunnelHandler({
        tunnels,
        writes,
        proposer,
        reads,
        isLeader,
        log,
        clock: systemClock,
        endCircuits: (isGranted) => this.#circuitHandler?.upkeep.endUngranted(isGranted),
      }),
    )
    const anchorsPem = (): string => authorities.anchorsPem()
    channels.add(createCertificateHandler({ state: machine, certifier, log, proposer, anchorsPem }))
    const invalidHosts = new UnknownTerminatorHandler({ proposer, log })
    this.#circuitHandler = new CircuitHandler({
      table: this.circuits,
      shared: new SharedCircuits({
        selfId: clusterNode.selfId,
        topic: clusterNode.soft.open('circuits'),
        table: this.circuits,
        controllers: () => listRouterControllers(clusterNode),
        isInQuorum: () => clusterNode.leaderId() !== null,
        isSessionOver: (id) => clients.goneSession(id) !== null,
        clock: systemClock,
        log,
      }),
      log,
      clock: systemClock,
      links: this.links,
      hosts: createHostLookup(machine),
      clients: shown,
      tunnels,
      traces: this.traces,
      reads,
      publishFact: this.#deps.publishFact,
      onInvalidHost: (host) => invalidHosts.note(host),
      connection: (id) => channels.connection(id),
      draw: () => randomInt(DRAWS) / DRAWS,
    })
    channels.add(this.#circuitHandler)
  }

  #logPresence(proposer: PrecheckingProposer, isLeader: () => boolean): () => void {
    const { machine } = this.#deps
    const state = {
      get featureLevel() {
        return machine.featureLevel
      },
      routers: () => allRouters(machine),
    }
    const clock = systemClock
    const deps = { statuses: this.#statuses, state, proposer, isLeader, clock, log: this.#log }
    return new RouterPresenceLog(deps).start(periodicScheduler)
  }

  get channels(): LiveTable<LiveChannel> {
    return this.#channels.table
  }

  /**
   * Listens if the configuration contains an address for routers.
   * @throws {ProgramFailure} when it cannot listen.
   */
  async open(credentials: CertificateAndKey, ports: TlsPortOpener): Promise<void> {
    const { bind } = this.#deps.config.routers
    if (bind === null) return
    this.#listener = await RouterListener.open(
      {
        channels: this.#channels,
        tls: listenerTlsOptions,
        clock: systemClock,
        room: clientSocketShare,
        isReady: this.#deps.isReady,
        adopt: (socket) => this.#adopt(socket),
      },
      credentials,
      (server) => this.#listen(server, bind, ports),
    )
  }

  #adopt(socket: TLSSocket): Promise<void> | null {
    const chain = this.#deps.isOutOfService() ? null : peerCertificateChain(socket)
    if (chain === null) return null
    return this.#adoption?.ofRouter(chain, clientAddress(socket)) ?? null
  }

  async #listen(server: Server, bind: string, ports: TlsPortOpener): Promise<ListeningTlsServer[]> {
    const { config } = this.#deps
    const address = parseHostPort(bind)
    assert(address !== null, 'the configuration has checked the address')
    const isShared = config.web.some((listener) => isPortSharedWithRouters(config, listener.bind))
    const addresses = isShared ? await resolveBindAddresses(bind) : [address]
    const protocols = { protocols: [CONTROL_PROTOCOL], clientsWithout: 'none' } as const
    const opened: ListeningTlsServer[] = []
    for (const each of addresses) {
      opened.push(await ports.open(server, each, 'routers.bind', protocols))
    }
    return opened
  }

  /** Sets the certificate for new connections; open connections keep the previous one. */
  renew(credentials: CertificateAndKey): void {
    this.#listener?.renew(credentials)
  }

  /** Closes every channel. The routers keep their channels to the other controllers. */
  async close(): Promise<void> {
    this.#stopPresenceLog()
    await this.#listener?.close()
  }
}

/**
 * The type of a link event. A new link is usable only after the router that was dialed has
 * connected to this controller.
 */
function seenType<T extends 'new' | 'known' | 'connectionsChanged'>(
  channels: RouterChannels,
  { destRouterId }: LiveLink,
  type: T,
): T | 'disconnectedDest' {
  const isConnected = channels.connection(destRouterId) !== undefined
  return type === 'new' && !isConnected ? 'disconnectedDest' : type
}

function* allRouters(machine: Pick<StateMachine, 'get' | 'ids'>): Iterable<Router> {
  for (const id of machine.ids('router')) {
    const router = machine.get('router', id)
    if (router !== undefined) yield router
  }
}

/** IDs of the routers that other routers may dial. Disabled routers are omitted. */
function* enabledRouters(machine: Pick<StateMachine, 'get' | 'ids'>): Iterable<string> {
  for (const id of machine.ids('router')) {
    if (machine.get('router', id)?.disabled === false) yield id
  }
}

/**
 * Creates a function that checks router certificates. The function uses only the router's record,
 * because every controller must be able to check routers that are connected to other controllers.
 */
function certificateJudge(machine: Pick<StateMachine, 'get'>) {
  return (routerId: string, fingerprints: readonly string[]): boolean => {
    const router = machine.get('router', routerId)
    if (router === undefined || router.disabled || !router.isVerified) return false
    const { fingerprint, certPem, nextFingerprint, nextCertPem } = router
    // A fingerprint is accepted only together with the stored certificate, because the fingerprint
    // of a certificate that was not adopted yet proves nothing. The pending certificate is also
    // accepted: a renewed router may open links before a controller has activated it.
    return (
      (certPem !== null && isAmong(fingerprints, fingerprint)) ||
      (nextCertPem !== null && isAmong(fingerprints, nextFingerprint))
    )
  }
}

function isAmong(fingerprints: readonly string[], fingerprint: string | null): boolean {
  return fingerprint !== null && fingerprint !== '' && fingerprints.includes(fingerprint)
}

function identityOf(id: string, clusterId: string): ControllerIdentity {
  const version = {
    version: OPENZITI_API_VERSION,
    revision: programRevision(),
    buildDate: programBuildDate(),
    os: process.platform,
    arch: process.arch,
  }
  return { id, clusterId, version }
}

/**
 * Minimum cost of each router in a path. Of two paths with the same latency, the one with fewer
 * routers is therefore cheaper.
 */
const ROUTER_COST_MIN = 10

/** Looks up services and routers in the records, and converts terminators to hosts for circuits. */
export function createHostLookup(machine: Pick<StateMachine, 'get' | 'findAll'>): HostLookup {
  return {
    service: (serviceId) => {
      const service = machine.get('service', serviceId)
      if (service === undefined) return undefined
      const { encryptionRequired, terminatorStrategy: strategy } = service
      const { maxIdleTimeMillis: maxIdleTimeMs } = service
      const all = machine.findAll('terminator', 'serviceId', serviceId)
      const hosts = all.map(hostOf)
      return { encryptionRequired, maxIdleTimeMs, strategy, hosts } satisfies HostedService
    },
    routerCost: (id) => Math.max(machine.get('router', id)?.cost ?? 0, ROUTER_COST_MIN),
    isEndOnly: (id) => machine.get('router', id)?.noTraversal === true,
  }
}

function hostOf(terminator: Terminator): ServiceHost {
  const { id, routerId, hostId, binding, address, cost, precedence, instanceId } = terminator
  const peerData = new Map<number, Uint8Array>()
  for (const [key, value] of Object.entries(terminator.peerData)) {
    peerData.set(Number(key), new Uint8Array(Buffer.from(value, 'base64')))
  }
  return {
    terminatorId: id,
    routerId,
    hostId,
    isMadeByRouter: terminator.isSystem,
    binding,
    address,
    cost,
    precedence,
    instanceId,
    peerData,
  }
}

/**
 * The cluster as this controller reports it to routers.
 * @param isOusted whether the cluster continues without this controller. If so, the controller
 * omits itself from the list: when two controllers remain, a router drops one only if both omit it.
 */
export function createRouterCluster(
  clusterNode: ClusterNode,
  isOusted: () => boolean,
): RouterClusterView {
  return {
    addresses: () => {
      const isGone = isOusted()
      const members = clusterNode.members().filter(({ id }) => !isGone || id !== clusterNode.selfId)
      // False if a member has never connected: its address is unknown.
      const isKnown = members.every(
        ({ startedAtMs, routerAddresses }) => startedAtMs > 0 || routerAddresses.length > 0,
      )
      if (members.length === 0 || !isKnown) return null
      const { index: configurationIndex, record } = clusterNode.configuration()
      const keys = new Map(record.members.map((member) => [member.id, member.publicKeySha256]))
      const controllers = members.flatMap((member) => {
        const { id, routerAddresses: addresses } = member
        const publicKeySha256 = keys.get(id) ?? new Uint8Array()
        const clientApis = clientApisOf(member)
        return addresses.length === 0 ? [] : [{ id, addresses, publicKeySha256, clientApis }]
      })
      const isLeader = clusterNode.leaderId() === clusterNode.selfId
      const index = isLeader
        ? Math.max(configurationIndex, clusterNode.status().commit)
        : configurationIndex
      // A voter that a change removes is still a member until the change is complete, so its key is
      // not listed as removed.
      const removed = record.removed.filter(
        ({ id, publicKeySha256 }) => !isSameKey(keys.get(id), publicKeySha256),
      )
      return { controllers, removed, index, configurationIndex, isLeader }
    },
    unreachable: () => clusterNode.members().flatMap(({ id, connected }) => (connected ? [] : id)),
    leaderIndex: () => {
      if (clusterNode.leaderId() !== clusterNode.selfId) return null
      return (
        clusterNode.members().find(({ id }) => id === clusterNode.selfId)?.progress?.term ?? null
      )
    },
  }
}

/** Base URLs of the member's client API, at which routers renew their certificates. */
function clientApisOf({ apiAddresses }: Pick<MemberView, 'apiAddresses'>): readonly string[] {
  const origins = apiAddresses.flatMap(({ api, url }) =>
    api === 'edge-client' ? (URL.parse(url)?.origin ?? []) : [],
  )
  return [...new Set(origins)]
}

function isSameKey(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.compare(a, b) === 0
}

/**
 * Controllers that can own circuits now: those that accept routers and are connected to this
 * controller, and this one if it accepts routers.
 */
export function* listRouterControllers(clusterNode: ClusterNode): Iterable<string> {
  for (const { id, connected, routerAddresses } of clusterNode.members()) {
    if (connected && routerAddresses.length > 0) yield id
  }
}
