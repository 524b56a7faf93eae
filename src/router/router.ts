import { hostname } from 'node:os'

import type { VersionLine } from '../channel/hello.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/random.ts'
import { formatHostPort } from '../lib/text/names.ts'
import type { CachedResolver } from '../lib/runtime/cached-resolver.ts'
import { readProcessMemory } from '../lib/runtime/thread-memory.ts'
import { routerConfigNotes, sectionNotes } from '../config/router/section-notes.ts'
import type { EffectiveValue } from '../config/engine/reader.ts'
import { configuredEndpoints, configuredProxy } from '../config/router/router-relations.ts'
import type { RouterConfig } from '../config/router/table.ts'
import type {
  ControlConnection,
  ControlMessageHandler,
  ControlMessageTable,
} from './controllers/control-connection.ts'
import { TerminatorFault } from '../../proto/gen/router_pb.ts'
import { createTerminatorValidator } from './controllers/terminator-validator.ts'
import { combineMessageTables } from './controllers/combine-message-tables.ts'
import { ControllerRequestLimiter } from './controllers/controller-request-limiter.ts'
import { ControllerManager } from './controllers/controller-manager.ts'
import { noControllerReason } from './controllers/endpoints-file.ts'
import { dialController } from './controllers/dial-controller.ts'
import {
  inspectionResponseMessage,
  type MetricsBatch,
  metricsMessage,
  readInspectionRequest,
} from '../channel/messages/reports.ts'
import { routerTlsAddresses } from './tls-addresses.ts'
import { EdgeService, EDGE_BINDING } from './edge/edge.ts'
import { terminatorDialers } from './dial/dialers.ts'
import { socketLimits } from '../overlay/sockets/limits.ts'
import { TlsPortOpener } from '../overlay/sockets/tls-port-opener.ts'
import { TargetSocketLimiter } from '../overlay/sockets/target-socket-limiter.ts'
import type { TerminatorDialer } from '../overlay/circuits/circuit-endpoint.ts'
import { Forwarder } from './forward/forwarder.ts'
import type { HealthCheck } from './health/health-check.ts'
import { HealthServers } from './health/health-servers.ts'
import { routerChecks } from './health/router-checks.ts'
import { RouterCertificateRenewer, type SendRenewal } from './identity/certificate-renewer.ts'
import { ReloadableIdentity, type RouterIdentity } from './identity/reloadable-identity.ts'
import { encodeLinkListeners } from '../channel/messages/links.ts'
import type { Link } from './links/link.ts'
import { LinkManager } from './links/link-manager.ts'
import { ClientListeners } from './listen/client-listeners.ts'
import { modelLimits } from './model/limits.ts'
import { ProgramFailure } from '../overlay/failure.ts'
import type { ProgramLogger } from '../overlay/logger.ts'
import { ModelSubscription } from './model/model-subscription.ts'
import { RouterDataModel } from './model/router-data-model.ts'
import { inspectRouter } from './reports/inspections.ts'
import { InterfaceReporter } from './reports/interface-reporter.ts'
import { MetricsReporter } from './reports/metrics-reporter.ts'
import { UsageReporter } from './reports/usage-reporter.ts'
import { Profiler } from './reports/profile.ts'
import { MessageTrace } from './reports/message-trace.ts'
import { type RouterTunnel, TUNNEL_BINDING, createTunnel } from './tunnel/tunnel.ts'
import { isoTime } from '../lib/text/format-time.ts'
import { edgeRouterHelloMessage, controlContentType } from '../channel/messages/control.ts'
import { channelContentType } from '../channel/numbers.ts'

interface RouterProgramDeps {
  readonly config: RouterConfig
  readonly effective: readonly EffectiveValue[]
  /** Command that makes this router forget the controllers that it knows, for a message. */
  readonly resetCommand?: string
  readonly version: VersionLine
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
  /** Null if this router does not renew its certificates. */
  readonly askExtension: SendRenewal | null
  /** Resolver that stores the last addresses of controllers and other routers. */
  readonly names: CachedResolver
}

const NANOSECONDS_A_MS = 1_000_000
/** Latency value with which OpenZiti routers report an unresponsive link. */
const UNRESPONSIVE_NS = 8_888_888_888_888

/** The edge router program: connects to controllers, links to other routers, forwards circuits. */
export class RouterProgram {
  readonly #deps: RouterProgramDeps
  readonly #holder: ReloadableIdentity
  readonly #controllers: ControllerManager
  readonly #links: LinkManager
  readonly #model = new RouterDataModel(modelLimits)
  readonly #modelSubscription: ModelSubscription
  readonly #tunnel: RouterTunnel | null
  readonly #forwarder: Forwarder
  readonly #targetSockets = new TargetSocketLimiter()
  readonly #listeners: ClientListeners
  readonly #ports: TlsPortOpener
  readonly #edge: EdgeService
  readonly #messages: ControlMessageTable
  readonly #metrics: MetricsReporter
  readonly #usages: UsageReporter
  readonly #interfaces: InterfaceReporter
  readonly #checks: readonly HealthCheck[]
  readonly #health: HealthServers
  readonly #extender: RouterCertificateRenewer
  readonly #trace: MessageTrace | null
  readonly #profiler: Profiler | null
  readonly #failed = Promise.withResolvers<never>()
  readonly #startedMs: number
  #startupTimer: NodeJS.Timeout | null = null
  #stopping: Promise<void> | null = null

  /**
   * @throws {ProgramFailure} when the identity or a file is unusable, or neither the configuration
   * nor the endpoints file names a controller.
   */
  constructor(deps: RouterProgramDeps) {
    this.#deps = deps
    const { config, clock, log, version } = deps
    this.#startedMs = clock.monotonicMs()
    const configured = configuredEndpoints(config).map(({ text }) => text)
    const fault = noControllerReason(configured, config.ctrl.endpointsFile)
    if (fault !== null) throw new ProgramFailure(`ctrl: ${fault}`)
    this.#holder = new ReloadableIdentity(config.identity, () => clock.nowMs(), log)
    const identity = () => this.#holder.current()
    this.#trace = config.trace === null ? null : new MessageTrace(config.trace.path, clock)
    this.#profiler = config.profile === null ? null : new Profiler(config.profile, log)
    const trustDomain = () => this.#controllers.trustDomain
    const connections = () => this.#controllers.connections
    this.#forwarder = new Forwarder({
      routerId: this.id,
      config: config.forwarder,
      clock,
      log,
      connections,
    })
    const { usages } = this.#forwarder
    this.#usages = new UsageReporter({ routerId: this.id, clock, usages, connections })
    const operations = new ControllerRequestLimiter(config.forwarder)
    this.#ports = new TlsPortOpener({
      addresses: routerTlsAddresses(config),
      handshakeTimeoutMs: config.tls.handshakeTimeout,
      ...socketLimits,
      log,
    })
    this.#edge = new EdgeService({
      ports: this.#ports,
      config,
      operations,
      identity,
      version,
      clock,
      log,
      connections,
      trustDomain,
      circuits: this.#forwarder,
      model: this.#model,
    })
    this.#listeners = this.#newListeners(identity, connections)
    const dialers = this.#registerDialers(identity)
    this.#links = this.#newLinks(identity, connections)
    const { listeners } = this.#links
    const linkListeners = listeners.length === 0 ? null : encodeLinkListeners(listeners)
    this.#controllers = this.#newControllers(identity, linkListeners)
    this.#modelSubscription = this.#newModelSubscription(connections)
    this.#tunnel = this.#newTunnel(operations, identity, connections)
    this.#messages = combineMessageTables([
      this.#messagesOfTheRouter(),
      this.#links.messages(),
      this.#modelSubscription.messages(),
      this.#forwarder.messages(),
      this.#tunnel?.messages() ?? new Map(),
      this.#edge.messages(),
      this.#answersForOthers(dialers),
    ])
    this.#metrics = new MetricsReporter({
      clock,
      config: config.metrics,
      figures: () => this.#figures(),
      send: (batch) => this.#sendMetrics(batch),
    })
    this.#interfaces = new InterfaceReporter({
      clock,
      connections,
      config: config.interfaceDiscovery,
      requestTimeoutMs: config.ctrl.defaultRequestTimeout,
    })
    this.#checks = routerChecks({ config, clock, connections, links: () => this.#links.links })
    this.#health = new HealthServers({
      web: config.web,
      identity,
      handshakeTimeoutMs: config.tls.handshakeTimeout,
      checks: this.#checks,
      figures: () => this.#figures(),
      version: version.version,
      log,
    })
    this.#extender = this.#newExtender()
  }

  #newControllers(
    identity: () => RouterIdentity,
    linkListeners: Uint8Array | null,
  ): ControllerManager {
    const { config, clock, random, log, version, names, resetCommand } = this.#deps
    return new ControllerManager({
      clock,
      random,
      log,
      endpointsFile: config.ctrl.endpointsFile,
      configuredEndpoints: configuredEndpoints(config).map(({ text }) => text),
      ...(resetCommand === undefined ? {} : { resetCommand }),
      dial: (address, handlers) =>
        dialController(
          {
            config: config.ctrl,
            proxy: configuredProxy(config),
            names,
            identity,
            version,
            linkListeners,
            clock,
            trace: this.#trace?.write.bind(this.#trace) ?? null,
            trustDomain: () => this.#controllers.trustDomain,
            refusal: (id, key) => this.#controllers.refusal(id, key),
            reserve: (id) => this.#controllers.reserve(id),
            release: (id) => this.#controllers.release(id),
          },
          address,
          handlers,
        ),
      handlers: {
        onConnected: (connection) => this.#onConnected(connection),
        onMessage: (connection, message) => {
          this.#messages.get(message.contentType)?.(connection, message)
        },
        onClosed: (connection) => {
          this.#edge.onControllerClosed(connection)
          this.#modelSubscription.onDisconnected(connection)
        },
      },
      onApis: () => this.#extender.wake(),
    })
  }

  #newListeners(
    identity: () => RouterIdentity,
    connections: () => readonly ControlConnection[],
  ): ClientListeners {
    const { config, clock, log } = this.#deps
    return new ClientListeners({
      config: config.listeners,
      handshakeTimeoutMs: config.tls.handshakeTimeout,
      circuits: this.#forwarder,
      connections,
      identity,
      clock,
      log,
    })
  }

  #newLinks(
    identity: () => RouterIdentity,
    connections: () => readonly ControlConnection[],
  ): LinkManager {
    const { config, clock, random, log, names } = this.#deps
    return new LinkManager({
      proxy: configuredProxy(config),
      names,
      ports: this.#ports,
      user: this.#forwarder,
      identity,
      clock,
      random,
      log,
      connections,
      config: config.link,
      dialing: config.forwarder,
      handshakeTimeoutMs: config.tls.handshakeTimeout,
    })
  }

  #registerDialers(identity: () => RouterIdentity): ReadonlyMap<string, TerminatorDialer> {
    this.#forwarder.registerDialer(EDGE_BINDING, this.#edge.dialer)
    const dialers = terminatorDialers({
      config: this.#deps.config.dialers,
      circuits: this.#forwarder,
      sockets: this.#targetSockets,
      caPem: () => identity().caPem,
      ownPorts: () => this.#listeners.ports,
    })
    for (const [binding, dialer] of dialers) this.#forwarder.registerDialer(binding, dialer)
    return dialers
  }

  /**
   * Handles validation requests for terminators that neither clients nor the tunnel host. Such a
   * terminator is valid if its binding has a dialer in the configuration.
   */
  #answersForOthers(dialers: ReadonlyMap<string, TerminatorDialer>): ControlMessageTable {
    const hosting = new Set<string>()
    if (this.#deps.config.edge !== null) hosting.add(EDGE_BINDING)
    if (this.#tunnel !== null) hosting.add(TUNNEL_BINDING)
    return createTerminatorValidator(
      (binding) => !hosting.has(binding),
      ({ binding }) => (dialers.has(binding) ? null : TerminatorFault.UNKNOWN_BINDING),
    )
  }

  #newModelSubscription(connections: () => readonly ControlConnection[]): ModelSubscription {
    const { clock, random, log } = this.#deps
    const [model, silentMsMax] = [this.#model, this.#controllerSilentMsMax()]
    return new ModelSubscription({ model, connections, silentMsMax, clock, random, log })
  }

  /** Time after which a silent controller counts as unresponsive. */
  #controllerSilentMsMax(): number {
    const { sendInterval, unresponsiveAfter } = this.#deps.config.ctrl.heartbeats
    return sendInterval + unresponsiveAfter
  }

  #newTunnel(
    operations: ControllerRequestLimiter,
    identity: () => RouterIdentity,
    connections: () => readonly ControlConnection[],
  ): RouterTunnel | null {
    const tunnel = createTunnel(this.#deps.config.listeners, {
      ...this.#deps,
      operations,
      identity,
      model: this.#model,
      circuits: this.#forwarder,
      sockets: this.#targetSockets,
      connections,
      neededAddresses: () => this.#neededAddresses(),
    })
    if (tunnel !== null) this.#forwarder.registerDialer(TUNNEL_BINDING, tunnel.dialer)
    return tunnel
  }

  #newExtender(): RouterCertificateRenewer {
    const { config, clock, log, askExtension } = this.#deps
    return new RouterCertificateRenewer({
      config,
      clock,
      log,
      holder: this.#holder,
      ask: askExtension,
      apis: () => this.#controllers.apis,
      onExtended: (api) => {
        this.#controllers.onExtended(api)
        this.#health.renew()
        this.#links.renew()
        this.#edge.renew()
        this.#listeners.renew()
      },
    })
  }

  /** Addresses that this router must reach: of controllers, the proxy and other routers. */
  #neededAddresses(): readonly string[] {
    const { controllers } = this.#controllers.membership
    const proxy = configuredProxy(this.#deps.config)
    return [
      ...configuredEndpoints(this.#deps.config).map(({ text }) => text),
      ...(proxy === null ? [] : [formatHostPort(proxy)]),
      ...controllers.flatMap(({ addresses }) => addresses),
      ...this.#controllers.apis.map((api) => new URL(api).host),
      ...this.#links.peerAddresses,
    ]
  }

  get id(): string {
    return this.#holder.current().id
  }

  /** The forwarder, which opens the circuit endpoints of this router. */
  get forwarder(): Forwarder {
    return this.#forwarder
  }

  /** Rejects when the router cannot continue because it reached no controller in time. */
  get failed(): Promise<never> {
    return this.#failed.promise
  }

  /** @throws {ProgramFailure} when a listener or file in the configuration cannot be opened. */
  async start(options: { readonly extends: boolean }): Promise<void> {
    const { config, log } = this.#deps
    const { id, leaf } = this.#holder.current()
    log.info({ routerId: id, certificateUntil: isoTime(leaf.notAfterMs) }, 'router starting')
    for (const line of routerConfigNotes(config)) log.info({}, line)
    // Prevents an unhandled rejection if no caller awaits this promise yet.
    this.#failed.promise.catch(() => undefined)
    await this.#profiler?.start()
    await this.#health.start()
    this.#forwarder.start()
    await this.#links.start()
    await this.#edge.start()
    await this.#listeners.start()
    for (const check of this.#checks) check.start()
    this.#startStartupTimer()
    await this.#tunnel?.start()
    this.#modelSubscription.start()
    this.#controllers.start()
    this.#metrics.start()
    this.#interfaces.start()
    this.#extender.start(options.extends)
  }

  /** May be called twice. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    if (this.#startupTimer !== null) clearTimeout(this.#startupTimer)
    this.#extender.stop()
    this.#metrics.stop()
    this.#interfaces.stop()
    for (const check of this.#checks) check.stop()
    await this.#edge.stop()
    this.#modelSubscription.stop()
    await this.#tunnel?.stop()
    await this.#listeners.stop()
    this.#forwarder.stop()
    this.#usages.sendUsage()
    await this.#links.stop()
    this.#controllers.stop()
    await this.#health.stop()
    await this.#profiler?.stop()
    this.#trace?.close()
  }

  #startStartupTimer(): void {
    const { startupTimeout } = this.#deps.config.ctrl
    if (startupTimeout === 0) return
    this.#startupTimer = setTimeout(() => {
      this.#failed.reject(
        new ProgramFailure(
          `no controller was reached within ${startupTimeout} ms (ctrl.startupTimeout): see the lines above for each address; correct ctrl.endpoints, which the router dials in addition to the addresses in ${this.#deps.config.ctrl.endpointsFile}`,
        ),
      )
    }, startupTimeout)
  }

  #onConnected(connection: ControlConnection): void {
    if (this.#startupTimer !== null) clearTimeout(this.#startupTimer)
    this.#startupTimer = null
    // The channel opens in a later turn; messages that are sent here follow the hello.
    this.#links.reportAll(connection)
    this.#modelSubscription.onConnected()
    this.#tunnel?.onConnected()
    this.#forwarder.onConnected(connection)
    this.#edge.onControllerConnected(connection)
    this.#interfaces.reportAll()
    this.#metrics.flush()
  }

  /** Handles requests to the router as a whole, and refuses those that it does not support. */
  #messagesOfTheRouter(): ControlMessageTable {
    const refuse: ControlMessageHandler = ({ channel }, message) => {
      channel.replyResult(message, false, 'not supported by this router')
    }
    return new Map<number, ControlMessageHandler>([
      [
        channelContentType.ping,
        ({ channel }, message) => {
          channel.replyResult(message, true, 'ok')
        },
      ],
      [
        controlContentType.serverHello,
        ({ channel }, message) => {
          channel.reply(
            message,
            edgeRouterHelloMessage(this.#deps.version.version, hostname(), this.#edge.addresses),
          )
        },
      ],
      [
        controlContentType.inspect,
        ({ channel }, message) => {
          const values = inspectRouter(readInspectionRequest(message.body), this.#values())
          channel.reply(message, inspectionResponseMessage(values))
        },
      ],
      [controlContentType.quiesceRouter, refuse],
      [controlContentType.dequiesceRouter, refuse],
      [controlContentType.decommissionRouter, refuse],
    ])
  }

  #sendMetrics(batch: MetricsBatch): boolean {
    const { connections } = this.#controllers
    for (const [at, { channel }] of connections.entries()) {
      channel.send(metricsMessage(this.id, batch, at === 0))
    }
    this.#usages.sendUsage()
    return connections.length > 0
  }

  #figures(): Pick<MetricsBatch, 'integers' | 'numbers' | 'latenciesNs'> {
    const { rss, heapUsed } = readProcessMemory()
    const { user, system } = process.cpuUsage()
    const { clock } = this.#deps
    return {
      integers: {
        'process.rss': rss,
        'process.heap': heapUsed,
        'process.uptime_ms': clock.monotonicMs() - this.#startedMs,
        'ctrl.connected': this.#controllers.connections.length,
        'ctrl.known': this.#controllers.membership.controllers.length,
        'link.count': this.#links.links.length,
        ...this.#forwarder.figures(),
        ...this.#edge.figures(),
        ...this.#tunnel?.figures(),
      },
      numbers: { 'process.cpu_seconds': (user + system) / 1_000_000 },
      latenciesNs: Object.fromEntries(
        this.#links.links.flatMap((link) => {
          const latencyNs = this.#latencyNs(link)
          const queuedNs = link.queuedForMs * NANOSECONDS_A_MS
          const queueTime = [`link.${link.id}.queue_time`, queuedNs] as const
          return latencyNs === null
            ? [queueTime]
            : [[`link.${link.id}.latency`, latencyNs] as const, queueTime]
        }),
      ),
    }
  }

  /** Latency of a link; `UNRESPONSIVE_NS` while the peer is silent, null before an answer. */
  #latencyNs({ channel, silentForMs }: Link): number | null {
    const { unresponsiveLinkTimeout } = this.#deps.config.forwarder
    if (silentForMs >= unresponsiveLinkTimeout) return UNRESPONSIVE_NS
    return channel.roundTripMs === null ? null : channel.roundTripMs * NANOSECONDS_A_MS
  }

  #values(): Readonly<Record<string, () => unknown>> {
    const { effective, config } = this.#deps
    return {
      'router-controllers': () => this.#controllerValues(),
      links: () => ({ links: this.#linkValues() }),
      config: () =>
        Object.fromEntries(effective.map(({ key, value, source }) => [key, { value, source }])),
      'router-data-model-index': () => ({
        index: Number(this.#model.index),
        timeline: this.#model.timelineId,
      }),
      'router-circuits': () => this.#forwarder.shown(),
      'sdk-terminators': () => ({ entries: this.#edge.terminators }),
      'ert-terminators': () => this.#tunnel?.shown() ?? { entries: [] },
      metrics: () => this.#figures(),
      health: () => this.#checks.map((check) => check.shown(false)),
      sections: () => sectionNotes(config),
    }
  }

  #linkValues(): readonly object[] {
    return this.#links.links.map((link) => ({
      id: link.id,
      dest: link.peerId,
      protocol: 'tls',
      dialed: link.isDialed,
      iteration: link.iteration,
      dialAddress: link.dialAddress,
      localAddress: link.localAddress,
      remoteAddress: link.remoteAddress,
      latencyMs: link.channel.roundTripMs,
      sockets: link.socketCount,
    }))
  }

  #controllerValues(): object {
    const { connections, membership } = this.#controllers
    const slowMs = this.#controllerSilentMsMax()
    const ids = new Set([...membership.controllers, ...connections].map(({ id }) => id))
    return {
      leader: membership.leaderId,
      index: String(membership.index),
      controllers: [...ids].sort().map((id) => {
        const connection = connections.find((one) => one.id === id)
        const known = membership.controllers.find((one) => one.id === id)
        return {
          controllerId: id,
          isConnected: connection !== undefined,
          isResponsive: connection !== undefined && connection.channel.silentForMs <= slowMs,
          address: connection?.address ?? known?.addresses[0] ?? '',
          addresses: known?.addresses ?? [],
          version: connection?.version ?? '',
          connectedAt: connection === undefined ? null : isoTime(connection.connectedAtMs),
          silentForMs: Math.round(connection?.channel.silentForMs ?? 0),
        }
      }),
    }
  }
}
