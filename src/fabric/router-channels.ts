import type { TLSSocket } from 'node:tls'

import { periodicScheduler } from '../lib/periodic-scheduler.ts'
import { Channel } from '../channel/channel.ts'
import {
  type Hello,
  type HelloGroup,
  helloRefusedMessage,
  readAcceptedGroup,
  readHello,
} from '../channel/hello.ts'
import { channelLimits } from '../channel/limits.ts'
import type { ChannelMessage, OutboundMessage } from '../channel/frame.ts'
import { assert } from '../lib/assert.ts'
import { clientAddress, clientPort } from '../lib/bounds/client-address.ts'
import type { Clock } from '../lib/clock.ts'
import type { ProcessorShare } from '../lib/bounds/processor-share.ts'
import type { ChangeFeed } from '../ports/change-feed.ts'
import { type ObservationSink, discardObservation } from '../ports/observations.ts'
import type { LiveTable, LiveChannel } from '../ports/live-table.ts'
import type { RouterAdmitter } from './router-admission.ts'
import { type MessageHandler, RouterConnection } from './router-connection.ts'
import type { ChannelHandler } from './channel-handler.ts'
import { type ControllerIdentity, helloResponse, helloFault } from './hello-response.ts'
import { routerLimits } from './limits.ts'
import {
  addressesMessage,
  type ClusterAddresses,
  type ControllerAddress,
  leaderMessage,
} from '../channel/messages/control.ts'
import { LiveRowTable } from './live-row-table.ts'
import { LostControllerDetector } from './lost-controller-detector.ts'
import type { RouterStatusTopic } from './router-status-topic.ts'

const MINUTE_MS = 60_000

export interface RouterLogger {
  info(fields: Readonly<Record<string, unknown>>, message: string): void
  warn(fields: Readonly<Record<string, unknown>>, message: string): void
}

/** Information about the cluster that is sent to routers. */
export interface RouterClusterView {
  /**
   * The addresses of all members. Null while the address of a member is unknown, because routers
   * consider every list complete.
   */
  addresses(): ClusterAddresses | null
  /** A number that grows with each new leader; null if this controller is not the leader. */
  leaderIndex(): number | null
  /** IDs of the members that this controller does not reach now. */
  unreachable(): readonly string[]
}

export interface RouterChannelsDeps {
  readonly feed: ChangeFeed
  readonly identity: ControllerIdentity
  readonly gate: RouterAdmitter
  readonly cluster: RouterClusterView
  readonly statuses: RouterStatusTopic
  readonly clock: Clock
  readonly log: RouterLogger
  /** Shares the processor time of the main thread between routers and other callers. */
  readonly processor: Pick<ProcessorShare, 'begin'>
  /** Publishes connects and disconnects of routers as events. */
  readonly publishFact?: ObservationSink
}

interface Connected {
  readonly connection: RouterConnection
  /** UTC ms. */
  readonly connectedAt: number
  readonly address: string
}

interface AddressesUpdate {
  /** The list of controllers as text, to compare lists: equal lists have equal texts. */
  readonly text: string
  readonly addresses: ClusterAddresses
  readonly message: OutboundMessage
}

/** The routers that are connected to this controller, with one channel for each router. */
export class RouterChannels {
  readonly #deps: RouterChannelsDeps
  readonly #rows: LiveRowTable<Connected, LiveChannel>
  /** Open channels, including channels whose router is not admitted yet. */
  readonly #open = new Set<Channel>()
  readonly #lostControllers: LostControllerDetector
  readonly #subjects: ChannelHandler[] = []
  readonly #messageHandlers = new Map<number, MessageHandler>()
  #stopTimer: (() => void) | null = null
  #soon: NodeJS.Immediate | null = null
  #unfollow: () => void = () => undefined
  #refusalsSinceMs = -Infinity
  #refusals = 0

  constructor(deps: RouterChannelsDeps) {
    this.#deps = deps
    this.#lostControllers = new LostControllerDetector(deps.clock)
    this.#rows = new LiveRowTable({
      owner: deps.identity.id,
      rowsMax: routerLimits.routerConnectionsMax,
      viewOf: ({ connection: { router, version }, connectedAt, address }) => ({
        id: router.id,
        name: router.name,
        connectedAt,
        address,
        version: version.version,
      }),
      onRemoved: ({ connection }) => {
        this.#onGone(connection)
        connection.channel.close('closed by an operator')
      },
    })
  }

  /**
   * Live table of the channels. If an operator removes a row, its channel closes; the router may
   * connect again.
   */
  get table(): LiveTable<LiveChannel> {
    return this.#rows
  }

  /** Registers a handler; only before `start`. */
  add(subject: ChannelHandler): void {
    this.#subjects.push(subject)
    for (const [contentType, handler] of subject.handlers) {
      assert(
        !this.#messageHandlers.has(contentType),
        `only one handler may take message ${contentType}`,
      )
      this.#messageHandlers.set(contentType, handler)
    }
  }

  *connections(): Iterable<RouterConnection> {
    for (const { connection } of this.#rows.allKept()) yield connection
  }

  /** The connection of the router; undefined if it has no channel to this controller. */
  connection(routerId: string): RouterConnection | undefined {
    return this.#rows.kept(routerId)?.connection
  }

  start(): void {
    this.#stopTimer ??= periodicScheduler.every(routerLimits.routerSweepMs, () => this.sweep())
    this.#unfollow()
    this.#unfollow = this.#deps.feed.follow(['router'], {
      onEntry: (_index, changes) => {
        if (changes.some(({ id }) => this.#rows.kept(id) !== undefined)) this.#sweepSoon()
      },
      onReplaced: () => this.#sweepSoon(),
    })
  }

  /**
   * Starts a sweep after the current log entry is applied, so that the channel of a disabled or
   * deleted router closes soon.
   */
  #sweepSoon(): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = null
      this.sweep()
    })
  }

  stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = null
    if (this.#soon !== null) clearImmediate(this.#soon)
    this.#soon = null
    this.#unfollow()
    for (const subject of this.#subjects) subject.onStop?.()
    // Sends a last list of members. If this controller stops because it was removed from the
    // cluster, the list confirms the removal to the routers.
    this.#sendMembers()
    for (const channel of Array.from(this.#open)) channel.close('the controller is stopping')
  }

  /** @param socket a socket whose TLS handshake is complete. */
  accept(socket: TLSSocket): void {
    let connection: RouterConnection | null = null
    const deadline = setTimeout(
      () => channel.close('no hello in time'),
      routerLimits.routerHandshakeTimeoutMs,
    )
    const channel: Channel = new Channel({
      socket,
      limits: channelLimits,
      clock: this.#deps.clock,
      onHello: (message) => {
        clearTimeout(deadline)
        connection = this.#welcome(channel, socket, message)
        // If the channel has closed before the hello was answered, `onClose` did not know the
        // connection, so its end is handled here.
        if (connection !== null && channel.isClosed) {
          this.#onClosed(connection, channel, 'closed at once')
        }
      },
      onMessage: (message) => connection?.onMessage(message) ?? null,
      begin: (work) => this.#begin(connection, work),
      onRefused: (type, fault) => {
        const { id = '' } = connection?.router ?? {}
        this.#logRefusal({ routerId: id, contentType: type, reason: fault }, 'message refused')
      },
      onClose: (reason) => {
        clearTimeout(deadline)
        this.#open.delete(channel)
        if (connection !== null) this.#onClosed(connection, channel, reason)
      },
    })
    this.#open.add(channel)
  }

  /**
   * Closes the channels of routers that may no longer be connected, and sends changes of members,
   * addresses and leader since the last sweep.
   */
  sweep(): void {
    const { gate, log } = this.#deps
    for (const connection of Array.from(this.connections())) {
      const { router, channel } = connection
      const revocation = gate.revoked(router)
      if (revocation === null) continue
      const { reason, endsLinks } = revocation
      log.info({ routerId: router.id, reason }, 'closing the channel of a router')
      if (endsLinks) for (const subject of this.#subjects) subject.onRevoked?.(connection)
      channel.close(reason)
    }
    this.#sendMembers()
    for (const subject of this.#subjects) subject.onSweep?.()
  }

  #sendMembers(): void {
    const lost = this.#lostControllers.update(this.#deps.cluster.unreachable())
    const connections = Array.from(this.connections())
    if (connections.length === 0) return
    const addresses = this.#addresses()
    const leaderIndex = this.#deps.cluster.leaderIndex()
    for (const connection of connections) {
      this.#sendAddresses(connection, addresses, false)
      this.#omitLost(connection, addresses, lost)
      this.#sendLeader(connection, leaderIndex)
    }
  }

  /**
   * Handles a hello. Catches unexpected errors, because an uncaught exception would end the process
   * and thus the channels of all routers.
   */
  #welcome(channel: Channel, socket: TLSSocket, message: ChannelMessage): RouterConnection | null {
    try {
      return this.#onHello(channel, socket, message)
    } catch (err) {
      this.#logRefusal({ address: clientAddress(socket), err })
      channel.close('the hello could not be verified')
      return null
    }
  }

  #onHello(channel: Channel, socket: TLSSocket, message: ChannelMessage): RouterConnection | null {
    const hello = readHello(message)
    if (hello === null) {
      channel.close('the first message is no hello')
      return null
    }
    const admission = this.#deps.gate.admit(socket)
    if (!admission.ok) return this.#refuse(channel, socket, hello, admission.reason)
    const { router } = admission
    if (router.id !== hello.token) {
      return this.#refuse(channel, socket, hello, 'the certificate belongs to another router')
    }
    if (hello.group !== null && !hello.group.isFirst) {
      return this.#join(channel, socket, hello, hello.group)
    }
    const fault = helloFault(hello)
    if (fault !== null || hello.version === null) {
      return this.#refuse(channel, socket, hello, fault ?? 'the hello has no version')
    }
    const { clock, identity, statuses, log } = this.#deps
    const answer = helloResponse(hello, identity)
    const before = this.connection(router.id)
    const address = clientAddress(socket)
    const connection: RouterConnection = new RouterConnection({
      channel,
      clock,
      group: readAcceptedGroup(answer),
      router,
      address,
      hello,
      version: hello.version,
      handlerOf: (contentType) => this.#messageHandlers.get(contentType) ?? null,
      ownVersion: identity.version.version,
      onStatus: (status) => {
        if (statuses.publish(router.id, status)) return
        log.warn(
          { routerId: router.id },
          'too many routers; this one is not reported to other controllers as online',
        )
      },
      onMembersAsked: () => this.#sendAddresses(connection, this.#addresses(), true),
    })
    if (!this.#rows.set(router.id, { connection, connectedAt: clock.nowMs(), address })) {
      return this.#refuse(channel, socket, hello, 'too many routers are connected')
    }
    before?.channel.close('replaced by a newer connection of the router')
    log.info(
      { routerId: router.id, name: router.name, address, version: hello.version.version },
      'router connected',
    )
    channel.open(answer)
    connection.start()
    this.#publishConnected(router.id, socket)
    this.#sendAddresses(connection, this.#addresses(), false)
    for (const subject of this.#subjects) subject.onConnected?.(connection)
    return connection
  }

  /** Adds a socket to the channel of a connected router. */
  #join(
    channel: Channel,
    socket: TLSSocket,
    hello: Hello,
    group: HelloGroup,
  ): RouterConnection | null {
    const connection = this.connection(hello.token)
    const fault =
      connection === undefined ? 'the router has no channel here' : connection.socketFault(group)
    if (connection === undefined || fault !== null) {
      return this.#refuse(channel, socket, hello, fault ?? '')
    }
    connection.addSocket(channel)
    channel.open(helloResponse(hello, this.#deps.identity), connection.channel)
    return connection
  }

  #publishConnected(id: string, socket: TLSSocket): void {
    const { identity, publishFact = discardObservation } = this.#deps
    publishFact({ kind: 'router', routerId: id, isOnline: true })
    publishFact({
      kind: 'connect',
      source: { type: 'router', id },
      sourceAddress: addressText(clientAddress(socket), clientPort(socket)),
      target: { type: 'ctrl', id: identity.id },
      targetAddress: addressText(socket.localAddress, socket.localPort),
    })
  }

  #refuse(channel: Channel, socket: TLSSocket, hello: Hello, reason: string): null {
    this.#logRefusal({
      routerId: hello.token.slice(0, 128),
      address: clientAddress(socket),
      reason,
    })
    channel.close(reason, helloRefusedMessage(reason, 'notPermitted'))
    return null
  }

  /** Starts work for a router when the router gets its share of the main thread's time. */
  #begin(
    connection: RouterConnection | null,
    work: () => Iterator<void> | null,
  ): Promise<void> | null {
    // @guard heavy-frames-of-a-router--turns
    return this.#deps.processor.begin(`router:${connection?.router.id ?? ''}`, work)
  }

  /**
   * Logs a refused connection, with a limited rate: anyone who can reach the listener can cause any
   * number of refusals.
   */
  #logRefusal(fields: Readonly<Record<string, unknown>>, message = 'router refused'): void {
    const { clock, log } = this.#deps
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#refusalsSinceMs >= MINUTE_MS) {
      this.#refusalsSinceMs = nowMs
      this.#refusals = 0
    }
    this.#refusals += 1
    if (this.#refusals <= routerLimits.routerRefusalsLoggedMax) log.warn(fields, message)
  }

  #onClosed(connection: RouterConnection, channel: Channel, reason: string): void {
    const { log } = this.#deps
    if (connection.channel !== channel) {
      connection.removeSocket(channel)
      return
    }
    connection.closeSockets(reason)
    const { id, name } = connection.router
    log.info({ routerId: id, name, reason }, 'router disconnected')
    // Ends here if the router has reconnected over another channel.
    if (this.connection(id) !== connection) return
    this.#rows.drop(id)
    this.#onGone(connection)
  }

  /**
   * Called when the router's row has left the table: its channel has closed, or an operator removed
   * the row.
   */
  #onGone(connection: RouterConnection): void {
    const { id } = connection.router
    this.#deps.statuses.withdraw(id)
    this.#deps.publishFact?.({ kind: 'router', routerId: id, isOnline: false })
    for (const subject of this.#subjects) subject.onDisconnected?.(connection)
  }

  /** The list of controllers as one message for all routers; null if the list is incomplete. */
  #addresses(): AddressesUpdate | null {
    const addresses = this.#deps.cluster.addresses()
    if (addresses === null) return null
    // The comparison leaves out the index, because the leader's index grows with every log entry.
    const { index: _index, ...sent } = addresses
    const text = JSON.stringify(sent)
    return { text, addresses, message: addressesMessage(addresses) }
  }

  #sendAddresses(
    connection: RouterConnection,
    update: AddressesUpdate | null,
    isAsked: boolean,
  ): void {
    if (update === null || (!isAsked && update.text === connection.sentAddresses)) return
    const { addresses, message, text } = update
    const before = connection.sentControllers
    // A router replaces its list only by one with a greater index. A list of the leader that
    // differs from the list sent last therefore gets a greater index, even if the log has not
    // grown.
    const isSame = text === connection.sentAddresses
    const isMoved = ({ id, addresses: now }: ControllerAddress): boolean =>
      before.some((known) => known.id === id && known.addresses.join() !== now.join())
    const left = addresses.controllers.filter((one) => !isMoved(one))
    connection.sentAddresses = text
    connection.sentControllers = addresses.controllers
    // A list that omits controllers must be replaced, even if this controller is no longer the
    // leader.
    const hasOmitted = connection.omittedControllers !== ''
    connection.omittedControllers = ''
    // An OpenZiti router continues to dial a known controller at the addresses that it received
    // first. If addresses have changed, the leader first sends a list without that controller.
    const mustForget =
      addresses.isLeader && left.length > 0 && left.length < addresses.controllers.length
    if (mustForget) {
      const index = Math.max(addresses.index, connection.sentIndex + 1)
      connection.channel.send(addressesMessage({ ...addresses, controllers: left, index }, true))
      connection.sentIndex = index
    }
    const least = connection.sentIndex + (isSame ? 0 : 1)
    const replaces = addresses.isLeader || hasOmitted
    const index = replaces ? Math.max(addresses.index, least) : addresses.index
    if (index === addresses.index) connection.channel.send(message)
    else connection.channel.send(addressesMessage({ ...addresses, index }))
    // As a follower, this controller sends the index of the membership configuration, which may be
    // lower than an index that it sent as leader. The maximum is stored, so that its lists get a
    // greater index again once it leads.
    connection.sentIndex = Math.max(connection.sentIndex, index)
  }

  /**
   * Sends a list without the lost controllers to routers of OpenZiti 1.x, and the full list when
   * the controllers are back. Such a router waits without a timeout to report the end of a circuit
   * to the controller that created the circuit (`edgeClientConn.cleanupXgressCircuit`). Meanwhile
   * it reads nothing from the client of the circuit. It stops waiting when it forgets the
   * controller. A leader that does not reach a majority omits no controller: then its own thread or
   * network is the fault.
   *
   * The hellos of OpenZiti 2.x announce a group; Flotilla routers ignore interim lists.
   */
  #omitLost(
    connection: RouterConnection,
    update: AddressesUpdate | null,
    lost: ReadonlySet<string>,
  ): void {
    if (update?.addresses.isLeader !== true || !connection.isOpenZitiV1) return
    const { addresses } = update
    const controllers = addresses.controllers.filter(({ id }) => !lost.has(id))
    const omitted = addresses.controllers.flatMap(({ id }) => (lost.has(id) ? [id] : [])).join()
    const isMajority = controllers.length * 2 > addresses.controllers.length
    if (!isMajority || omitted === connection.omittedControllers) return
    const index = Math.max(addresses.index, connection.sentIndex + 1)
    const isInterim = omitted !== ''
    connection.channel.send(addressesMessage({ ...addresses, controllers, index }, isInterim))
    connection.omittedControllers = omitted
    connection.sentIndex = index
  }

  #sendLeader(connection: RouterConnection, index: number | null): void {
    if (index === null || index <= connection.sentLeaderIndex) return
    connection.sentLeaderIndex = index
    connection.channel.send(leaderMessage(index))
  }
}

function addressText(host = '', port = 0): string {
  return host === '' ? '' : `tls:${host.includes(':') ? `[${host}]` : host}:${port}`
}
