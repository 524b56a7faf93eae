import { formatHostPort, type HostPort } from '../../lib/text/names.ts'
import type { VersionLine } from '../../channel/hello.ts'
import type { Clock } from '../../lib/clock.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import { type WebSocketTimeouts, webSocketTimeouts } from '../../config/router/table-transport.ts'
import type { ControlConnection, ControlMessageTable } from '../controllers/control-connection.ts'
import type { ControllerRequestLimiter } from '../controllers/controller-request-limiter.ts'
import type { LocalCircuits, TerminatorDialer } from '../../overlay/circuits/circuit-endpoint.ts'
import { xgressOptions } from '../../overlay/circuits/xgress-options.ts'
import type { RouterIdentity } from '../identity/reloadable-identity.ts'
import { edgeLimits } from './limits.ts'
import type { RouterDataModel } from '../model/router-data-model.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import { RateLimitedWarningLog } from '../../overlay/sockets/rate-limited-warning-log.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { KeyedTasks } from '../../lib/keyed-tasks.ts'
import { ApiSessions } from './api-sessions.ts'
import { BearerSessions } from './bearer-sessions.ts'
import { isStillAdmitted } from './client-admission.ts'
import type { ClientChannel, ClientRequestHandlers } from './client-channel.ts'
import { ConnectedIdentities } from './connected-identities.ts'
import { ClientPostureForwarder } from './client-posture-forwarder.ts'
import { ConnectRequestHandler } from './connect-request-handler.ts'
import {
  apiSessionHeartbeatMessage,
  readServiceSessionsRemoved,
  validateSessionsMessage,
} from '../../channel/messages/clients.ts'
import { EdgeDialer } from './edge-dialer.ts'
import { EdgeListener } from './edge-listener.ts'
import type { TlsPortOpener } from '../../overlay/sockets/tls-port-opener.ts'
import { HostedTerminatorRegistry } from './hosted-terminator-registry.ts'
import { addToSet, removeFromSet } from '../../lib/keyed-sets.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

export interface EdgeServiceDeps {
  readonly ports: TlsPortOpener
  readonly config: Pick<RouterConfig, 'edge' | 'listeners' | 'tls' | 'transport'>
  readonly identity: () => RouterIdentity
  readonly version: VersionLine
  readonly clock: Clock
  readonly log: ProgramLogger
  readonly connections: () => readonly ControlConnection[]
  readonly operations: ControllerRequestLimiter
  readonly trustDomain: () => string | null
  readonly circuits: LocalCircuits
  readonly model: Pick<RouterDataModel, 'contents' | 'mayUse' | 'onChanged'>
}

/** An address that the router reports for clients. */
export interface EdgeAddress extends HostPort {
  readonly protocol: string
}

/** Options of an edge listener that this router supports. */
interface EdgeOptions {
  readonly lookupApiSessionTimeout: number
  readonly connectTimeoutMs: number
  readonly connectTimeout: number | null
  readonly writeTimeout: number | null
  readonly getCircuitTimeout: number
}

type ListenerConfig = RouterConfig['listeners'][number]

/** The binding of listeners for OpenZiti SDK clients. */
export const EDGE_BINDING = 'edge'
const SECOND_MS = 1000
const TOKENS_AT_ONCE = 1000

/**
 * Serves clients of the network: a client with a valid API session can connect to this router, dial
 * services and host services.
 */
export class EdgeService {
  readonly dialer: TerminatorDialer
  readonly #deps: EdgeServiceDeps
  readonly #listeners: EdgeListener[] = []
  readonly #sessions: ApiSessions
  readonly #bearers: BearerSessions
  readonly #postures: ClientPostureForwarder
  readonly #terminators: HostedTerminatorRegistry
  readonly #identities: ConnectedIdentities
  /** Channels by API session token. */
  readonly #byToken = new Map<string, Set<ClientChannel>>()
  /** Number of connections in all channels; identities share the limit fairly. */
  readonly #room = new FairShare(edgeLimits.clientConnectionsMax)
  readonly #connects = new KeyedTasks(edgeLimits.connectsAtOnceMax)
  readonly #failures: RateLimitedWarningLog
  #stopTimers: (() => void)[] = []

  constructor(deps: EdgeServiceDeps) {
    this.#deps = deps
    this.#failures = new RateLimitedWarningLog(deps.log, deps.clock)
    this.#bearers = new BearerSessions({
      model: deps.model,
      clock: deps.clock,
      isShown: (token) => this.#byToken.has(token),
      // @guard access-token-at-a-router--ended
      onEnded: (tokens) => this.#onSessionsChanged(tokens),
    })
    this.#sessions = new ApiSessions({
      log: deps.log,
      bearers: this.#bearers,
      onChanged: (tokens) => this.#onSessionsChanged(tokens),
      onWhole: (connection) => this.#askAboutSessions(connection),
    })
    const { clock, log, connections, circuits, operations } = deps
    this.#postures = new ClientPostureForwarder({ connections, failures: this.#failures })
    this.#terminators = new HostedTerminatorRegistry({
      clock,
      log,
      connections,
      operations,
      controllerFor: (client) => this.#controllerFor(client),
      postureSettled: (client, controllerId) => this.#postures.settled(client, controllerId),
    })
    this.#identities = new ConnectedIdentities(connections)
    this.dialer = new EdgeDialer({ circuits, terminators: this.#terminators })
  }

  /** Addresses that the edge listeners in the configuration advertise. */
  get addresses(): readonly EdgeAddress[] {
    return this.#opened().flatMap(({ bind, advertise }) =>
      bind === null || advertise === null ? [] : [{ ...advertise, protocol: bind.protocol }],
    )
  }

  /** Listening ports. */
  get ports(): readonly number[] {
    return this.#listeners.map(({ port }) => port)
  }

  get channels(): number {
    return [...this.#clients()].length
  }

  get terminatorIds(): readonly string[] {
    return this.#terminators.all.map(({ id }) => id)
  }

  /** Terminators for an inspection, without secrets. */
  get terminators(): readonly object[] {
    return this.#terminators.all.map(({ id, client, connectionId, isEstablished, ...shown }) => ({
      id,
      identityId: client.client.session.identityId,
      connId: connectionId,
      state: isEstablished ? 'established' : 'establishing',
      operationActive: shown.isAsked,
      listenerId: shown.listenerId,
      instance: shown.instanceId,
      cost: shown.cost,
      precedence: shown.precedence,
      useSdkXgress: shown.isXgressInClient,
    }))
  }

  /** Numbers for the router's metrics. */
  figures(): Readonly<Record<string, number>> {
    if (this.#deps.config.edge === null) return {}
    const clients = [...this.#clients()]
    return {
      'edge.connections': clients.length,
      'edge.circuits': clients.reduce((sum, { connections }) => sum + connections, 0),
      'edge.terminators': this.#terminators.all.length,
      'edge.api_sessions': this.#sessions.size,
    }
  }

  messages(): ControlMessageTable {
    if (this.#deps.config.edge === null) return new Map()
    return new Map([
      ...this.#sessions.messages(),
      ...this.#terminators.messages(),
      [
        controlContentType.sessionRemoved,
        (_, { body }) => {
          const { tokens, ids } = readServiceSessionsRemoved(body)
          this.#endSessions(new Set(tokens), new Set(ids))
        },
      ],
    ])
  }

  /** @throws {ProgramFailure} when a listener cannot be opened. */
  async start(): Promise<void> {
    const { config, log } = this.#deps
    if (config.edge === null) return
    for (const listener of this.#opened()) {
      if (listener.bind === null) continue
      const place = `listeners[${config.listeners.indexOf(listener)}]`
      const { protocol, text } = listener.bind
      const opened = this.#listenerOf(
        listener.options as Readonly<Record<string, unknown>> & EdgeOptions,
        protocol === 'wss' ? webSocketTimeouts(config.transport) : null,
      )
      await opened.listen(listener.bind, place)
      this.#listeners.push(opened)
      log.info(
        { address: text, advertised: formatHostPort(listener.advertise ?? listener.bind) },
        'listening for clients',
      )
    }
    this.#terminators.start()
    const everyMs = config.edge.heartbeatIntervalSeconds * SECOND_MS
    this.#stopTimers = [
      periodicScheduler.every(everyMs, () => this.#reportUsed()),
      periodicScheduler.every(edgeLimits.bearerSweepMs, () => this.#bearers.sweep()),
    ]
  }

  renew(): void {
    for (const listener of this.#listeners) listener.renew()
  }

  async stop(): Promise<void> {
    for (const stop of this.#stopTimers) stop()
    this.#sessions.stop()
    this.#bearers.stop()
    await Promise.all(this.#listeners.map((listener) => listener.close()))
    this.#terminators.stop()
    this.#identities.stop()
  }

  onControllerConnected(connection: ControlConnection): void {
    if (this.#deps.config.edge === null) return
    this.#identities.reportAll(connection)
    this.#terminators.onControllerConnected(connection)
    this.#postures.onControllerConnected(connection)
  }

  onControllerClosed(connection: ControlConnection): void {
    this.#sessions.onControllerClosed(connection)
    this.#postures.onControllerClosed(connection)
  }

  #opened(): ListenerConfig[] {
    const { edge, listeners } = this.#deps.config
    if (edge === null) return []
    return listeners.filter(({ binding, bind }) => binding === EDGE_BINDING && bind !== null)
  }

  #listenerOf(
    options: Readonly<Record<string, unknown>> & EdgeOptions,
    webSockets: WebSocketTimeouts | null,
  ): EdgeListener {
    const { identity, version, clock, log, trustDomain, config, circuits } = this.#deps
    const connects = new ConnectRequestHandler({
      circuits,
      log,
      failures: this.#failures,
      tasks: this.#connects,
      controllerFor: (client) => this.#controllerFor(client),
      serviceIdNamed: (name, identityId) => this.#serviceIdNamed(name, identityId),
      postureSettled: (client, controllerId) => this.#postures.settled(client, controllerId),
      timeoutMs: options.getCircuitTimeout,
    })
    return new EdgeListener({
      ports: this.#deps.ports,
      identity,
      version,
      clock,
      log,
      trustDomain,
      sessions: this.#sessions,
      services: this.#servicesOf(connects, options.lookupApiSessionTimeout),
      handshakeTimeoutMs: config.tls.handshakeTimeout,
      webSockets,
      helloTimeoutMs: options.connectTimeout ?? options.connectTimeoutMs,
      lookupTimeoutMs: options.lookupApiSessionTimeout,
      writeTimeoutMs: options.writeTimeout,
      options: xgressOptions(options),
      faultOfRoom: (identityId) => {
        const isFull =
          this.#identities.channelsOf(identityId) >= edgeLimits.clientChannelsPerIdentityMax
        return isFull ? 'the identity has too many connections to this router' : null
      },
      onOpen: (client) => this.#onOpen(client),
      onClosed: (client, reason) => this.#onClosed(client, reason),
    })
  }

  #servicesOf(connects: ConnectRequestHandler, lookupTimeoutMs: number): ClientRequestHandlers {
    const terminators = this.#terminators
    const sharer = ({ client }: ClientChannel): string => client.session.identityId
    return {
      circuits: this.#deps.circuits,
      connect: (client, message, id) => connects.connect(client, message, id),
      connectByService: (client, message, id) => connects.connectByService(client, message, id),
      bind: (client, message, id) => terminators.bind(client, message, id),
      unbind: (client, message, id) => terminators.unbind(client, message, id),
      updateBind: (client, message, id) => terminators.updateBind(client, message, id),
      onHealth: (client, message, id) => terminators.onHealth(client, message, id),
      onPosture: (client, message) => this.#postures.take(client, message),
      renewToken: (client, token) => this.#renewToken(client, token, lookupTimeoutMs),
      isHosting: (client, id) => terminators.isHosting(client, id),
      takeRoom: (client) => {
        if (!this.#room.hasRoomFor(sharer(client))) return false
        this.#room.take(sharer(client))
        return true
      },
      giveRoomBack: (client) => this.#room.giveBack(sharer(client)),
    }
  }

  /**
   * ID of the service with this name. Null if the service does not exist or the identity may not
   * dial it, so that the identity cannot distinguish the two.
   */
  #serviceIdNamed(name: string, identityId: string): string | null {
    const { model } = this.#deps
    const id = model.contents.services.named(name)?.id ?? ''
    return model.mayUse(identityId, id, 'Dial') ? id : null
  }

  #onOpen(client: ClientChannel): void {
    const { session } = client.client
    const { remoteAddress } = client
    const { id, identityId, token } = session
    this.#deps.log.info({ identityId, apiSessionId: id, remoteAddress }, 'client connected')
    addToSet(this.#byToken, token, client)
    this.#identities.add(client)
  }

  #onClosed(client: ClientChannel, reason: string): void {
    const { identityId, token } = client.client.session
    this.#deps.log.info(
      { identityId, remoteAddress: client.remoteAddress, reason },
      'client disconnected',
    )
    removeFromSet(this.#byToken, token, client)
    this.#identities.remove(client)
    this.#terminators.onClientClosed(client)
    this.#postures.onClientClosed(client)
  }

  *#clients(): Generator<ClientChannel> {
    for (const channels of this.#byToken.values()) yield* channels
  }

  /**
   * The controller that reported the client's session. If that controller is not connected, any
   * connected controller; null if there is none.
   */
  #controllerFor({ client }: ClientChannel): ControlConnection | null {
    const connections = this.#deps.connections()
    const { controllerId } = this.#sessions.find(client.session.token) ?? client.session
    return connections.find(({ id }) => id === controllerId) ?? connections[0] ?? null
  }

  #onSessionsChanged(tokens: ReadonlySet<string>): void {
    for (const token of tokens) {
      const session = this.#sessions.find(token)
      for (const { client, channel } of Array.from(this.#byToken.get(token) ?? [])) {
        // @guard client-of-a-removed-session--channel
        if (!isStillAdmitted(client, session)) channel.close('the API session has ended')
      }
    }
  }

  #endSessions(tokens: ReadonlySet<string>, ids: ReadonlySet<string>): void {
    for (const client of this.#clients()) client.endSessions(tokens, ids)
    this.#terminators.endSessions(tokens, ids)
  }

  /**
   * Replaces the token of a session on all its channels, because all channels of a client have the
   * same token.
   */
  async #renewToken(
    client: ClientChannel,
    token: string,
    timeoutMs: number,
  ): Promise<string | null> {
    const { session } = client.client
    if (!BearerSessions.isMeant(session.token)) {
      return 'the API session of this connection has no token that can be renewed'
    }
    // @guard clients-that-leave--renewal
    const renewed = await this.#bearers.await(token, timeoutMs, client.closeSignal)
    if (renewed === null) return 'the access token is not good'
    const before = [...(this.#byToken.get(session.token) ?? [])]
    if (before.length === 0) return 'the connection is closed'
    // @guard access-token-at-a-router--renewed
    if (!before.every((one) => isStillAdmitted(one.client, renewed))) {
      return 'the access token is of another session, or for another certificate'
    }
    const channels = this.#byToken.get(token) ?? new Set()
    for (const each of before) {
      each.renew(renewed)
      channels.add(each)
    }
    this.#byToken.delete(session.token)
    this.#byToken.set(token, channels)
    return null
  }

  /**
   * Reports the API sessions that clients use, because controllers end unused sessions. OIDC
   * clients are not reported: they renew their tokens at controllers.
   */
  #reportUsed(): void {
    const tokens = [...this.#byToken.keys()].filter((token) => !BearerSessions.isMeant(token))
    const [controller] = this.#deps.connections()
    for (let at = 0; at < tokens.length; at += TOKENS_AT_ONCE) {
      controller?.channel.send(apiSessionHeartbeatMessage(tokens.slice(at, at + TOKENS_AT_ONCE)))
    }
  }

  /**
   * Asks the controller which service sessions have ended while this router was not connected to
   * it. The request goes only to a controller that has sent its API sessions: another one may lag
   * behind and report new sessions as ended.
   */
  #askAboutSessions({ channel }: ControlConnection): void {
    const tokens = new Set(this.#terminators.all.map(({ session }) => session.token))
    for (const client of this.#clients()) {
      for (const token of client.sessionTokens()) tokens.add(token)
    }
    const all = [...tokens]
    for (let at = 0; at < all.length; at += TOKENS_AT_ONCE) {
      channel.send(validateSessionsMessage(all.slice(at, at + TOKENS_AT_ONCE)))
    }
  }
}
