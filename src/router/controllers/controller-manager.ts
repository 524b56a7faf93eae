import type { ChannelMessage } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Random } from '../../lib/random.ts'
import { controllerLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { ControlConnection, ControlHandlers } from './control-connection.ts'
import { ControllerDialer, type DialController, type DialTarget } from './controller-dialer.ts'
import {
  AlreadyConnectedError,
  ControllerRefusedError,
  type DialedController,
} from './dial-controller.ts'
import { type KnownEndpoints, readEndpoints, writeEndpoints } from './endpoints-file.ts'
import { ControllerMembership } from './membership.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import { readAddresses } from './addresses-update.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

const { configuredEndpointAfterMs, configuredEndpointWaitMsMax, membersJudgedEveryMs } =
  controllerLimits

interface ControllerManagerDeps {
  readonly endpointsFile: string
  /**
   * Configured addresses; the router also dials them while it is connected to fewer controllers
   * than it knows or has configured.
   */
  readonly configuredEndpoints: readonly string[]
  /** Command that makes this router forget the controllers that it knows, for a message. */
  readonly resetCommand?: string
  readonly dial: DialController
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
  readonly handlers: ControlHandlers
  /** Called when the client APIs that a majority of the controllers reports have changed. */
  readonly onApis: () => void
}

/**
 * The controllers of the cluster, with one channel to every current member. Stores the members in a
 * file, so that a restarted router finds its cluster even if no configured controller is a member
 * any more.
 */
export class ControllerManager {
  readonly #deps: ControllerManagerDeps
  readonly #membership: ControllerMembership
  /** Dialers of known controllers. */
  readonly #dialers = new Set<ControllerDialer>()
  /**
   * For each configured address, the dialer for this address; while no controller is known, also
   * for each address in the endpoints file. The dialer becomes that of the controller that responds
   * there.
   */
  readonly #endpointDialers = new Map<string, ControllerDialer>()
  readonly #connections = new Map<string, ControlConnection>()
  /** IDs of controllers to which a hello was sent that has no answer yet. */
  readonly #greeted = new Set<string>()
  /**
   * Client API addresses: those that have extended the router certificates, the latest first, then
   * the others from the endpoints file, such as the address from the enrollment.
   */
  #answeredApis: readonly string[]
  /**
   * The client APIs that a majority of the controllers reported at the last change of the members.
   */
  #reportedApis: readonly string[]
  readonly #endpoints: readonly string[]
  #trustDomain: string | null
  #askTimer: NodeJS.Timeout | null = null
  #stopJudging: (() => void) | null = null
  #isStopped = false

  constructor(deps: ControllerManagerDeps) {
    this.#deps = deps
    const known = knownOf(deps)
    this.#endpoints = known.endpoints
    this.#answeredApis = known.apis
    this.#trustDomain = known.trustDomain
    this.#membership = new ControllerMembership({
      controllers: known.controllers,
      removed: known.removed,
      configured: deps.configuredEndpoints,
      ...(deps.resetCommand === undefined ? {} : { resetCommand: deps.resetCommand }),
      clock: deps.clock,
    })
    this.#reportedApis = this.#membership.apis
  }

  /** Open connections to controllers. */
  get connections(): readonly ControlConnection[] {
    return [...this.#connections.values()]
  }

  get membership(): Pick<ControllerMembership, 'controllers' | 'leaderId' | 'index'> {
    return this.#membership
  }

  get trustDomain(): string | null {
    return this.#trustDomain
  }

  /**
   * Why a controller with this key must not be trusted, as a clause for a message; null if it may
   * be trusted.
   */
  refusal(id: string, keySha256: string): string | null {
    return this.#membership.refusal(id, keySha256)
  }

  /**
   * Reserves a controller for one hello, because a controller that receives a second channel of a
   * router closes the first one.
   * @returns false if the controller is connected, or a hello to it has no answer yet.
   */
  reserve(id: string): boolean {
    if (this.#connections.has(id) || this.#greeted.has(id)) return false
    this.#greeted.add(id)
    return true
  }

  /**
   * Ends a reservation. After a successful hello, the caller must add the connection in the same
   * turn of the event loop.
   */
  release(id: string): void {
    this.#greeted.delete(id)
  }

  /**
   * Addresses of client APIs: first those that controllers report, of which the one that last
   * extended the router certificates comes first, then others. An example of the others is the
   * address from the enrollment, if it is that of a load balancer that no controller reports.
   */
  get apis(): readonly string[] {
    const reported = this.#membership.apis
    const answered = this.#answeredApis
    const first = answered.filter((api) => reported.includes(api))
    const all = [...first, ...reported, ...answered, ...this.#guessedApis()]
    return [...new Set(all)].slice(0, controllerLimits.apisMax)
  }

  /**
   * Possible client APIs of controllers that do not report them: controllers of OpenZiti and of
   * release 0.2.0. They probably use the same port as another known client API.
   */
  #guessedApis(): readonly string[] {
    const ports = new Set(this.#answeredApis.map((api) => new URL(api).port || '443'))
    const silent = this.#membership.controllers.filter(({ apis = [] }) => apis.length === 0)
    const hosts = silent.flatMap(({ addresses }) =>
      addresses.map((address) => address.slice('tls:'.length).replace(/:\d+$/, '')),
    )
    return hosts.flatMap((host) =>
      [...ports].map((port) => new URL(`https://${host}:${port}`).origin),
    )
  }

  /**
   * Called when the client API at this address has extended the router certificates. From then on,
   * also after a restart, the address comes first in `apis`; if no controller reports the address,
   * it comes first after the reported ones. The router reconnects to one controller, because the
   * first connection with the new certificate makes the cluster accept it. The other controllers
   * then close their connections, and the dialers open new ones.
   */
  onExtended(api: string): void {
    if (this.#answeredApis[0] !== api) {
      this.#answeredApis = [api, ...this.#answeredApis.filter((other) => other !== api)]
      this.#save()
    }
    const [first] = this.connections
    first?.channel.close('the router certificates were extended')
  }

  start(): void {
    const { controllers } = this.#membership
    for (const { id, addresses } of controllers) this.#add({ id, addresses }).start()
    const { configuredEndpoints } = this.#deps
    const endpoints =
      controllers.length > 0 ? configuredEndpoints : [...this.#endpoints, ...configuredEndpoints]
    // @guard router-captured--endpoints
    for (const address of new Set(endpoints)) {
      this.#addEndpoint(address, controllers.length > 0 ? configuredEndpointAfterMs : 0)
    }
    this.#stopJudging = periodicScheduler.every(membersJudgedEveryMs, () => {
      if (this.#membership.onTime()) this.#onMembersChanged({ reason: 'time' })
    })
  }

  stop(): void {
    this.#isStopped = true
    if (this.#askTimer !== null) clearTimeout(this.#askTimer)
    this.#stopJudging?.()
    for (const dialer of this.#allDialers()) dialer.stop('the router stops')
  }

  #allDialers(): readonly ControllerDialer[] {
    return [...this.#dialers, ...this.#endpointDialers.values()]
  }

  #add(target: DialTarget): ControllerDialer {
    const dialer = this.#newDialer(target)
    this.#dialers.add(dialer)
    return dialer
  }

  #addEndpoint(address: string, afterMs: number): void {
    const isFirst = this.#membership.controllers.length === 0
    const dialer = this.#newDialer({
      id: null,
      addresses: [address],
      ...(isFirst ? {} : { waitMsMax: configuredEndpointWaitMsMax }),
    })
    this.#endpointDialers.set(address, dialer)
    dialer.start(afterMs)
  }

  #newDialer(target: DialTarget): ControllerDialer {
    const { dial, clock, random, log } = this.#deps
    return new ControllerDialer(
      {
        dial,
        clock,
        random,
        log,
        onConnected: (from, connection) => this.#onConnected(from, connection),
        onMessage: (connection, message) => this.#onMessage(connection, message),
        onClosed: (connection, reason) => this.#onClosed(connection, reason),
        isWanted: (dialer) => this.#isWanted(dialer),
      },
      target,
    )
  }

  #isWanted({ id, addresses, connectedAlready }: ControllerDialer): boolean {
    if (id !== null) return !this.#connections.has(id)
    const { size } = this.#connections
    const { controllers } = this.#membership
    // At least one controller is required: when a router starts with only the files of its
    // enrollment, both lists are empty.
    const isEnough = size >= Math.max(1, controllers.length, this.#deps.configuredEndpoints.length)
    const isKnown = [...this.#dialers].some((other) =>
      addresses.every((address) => other.dials(address)),
    )
    const isThere = connectedAlready !== null && this.#connections.has(connectedAlready)
    return !isEnough && !isKnown && !isThere
  }

  #onConnected(dialer: ControllerDialer, connection: DialedController): Error | null {
    const { id, address, version, keySha256 } = connection
    if (this.#connections.has(id)) return new AlreadyConnectedError(id)
    const fault = this.refusal(id, keySha256)
    if (fault !== null) return new ControllerRefusedError(fault)
    const isChanged = this.#membership.onConnected(id, address, keySha256)
    if (!this.#isMember(id)) {
      this.#membership.onClosed(id)
      return new Error(`controller ${id} is not a member, as the other controllers say`)
    }
    this.#connections.set(id, connection)
    this.#deps.log.info({ controllerId: id, address, version }, 'connected to controller')
    if (this.#trustDomain === null) {
      this.#trustDomain = connection.trustDomain
      this.#save()
    }
    for (const other of this.#allDialers()) if (other !== dialer) other.wake()
    this.#deps.handlers.onConnected(connection)
    if (isChanged) this.#onMembersChanged({ from: id })
    else this.#reconcile()
    return null
  }

  #isMember(id: string): boolean {
    return this.#membership.controllers.some((known) => known.id === id)
  }

  #onClosed(connection: ControlConnection, reason: string): void {
    const { id, address } = connection
    if (this.#connections.get(id) !== connection) return
    this.#connections.delete(id)
    this.#membership.onClosed(id)
    this.#deps.log.info({ controllerId: id, address, reason }, 'disconnected from controller')
    this.#deps.handlers.onClosed(connection, reason)
  }

  #onMessage(connection: ControlConnection, message: ChannelMessage): void {
    try {
      switch (message.contentType) {
        case controlContentType.updateCtrlAddresses:
          this.#onMembers(connection, message)
          return
        case controlContentType.updateClusterLeader:
          this.#onLeader(connection)
          return
        default:
          this.#deps.handlers.onMessage(connection, message)
      }
    } catch (error) {
      // Only logs the error, because one malformed message must not close connections to other
      // controllers.
      const { contentType } = message
      const fields = { controllerId: connection.id, contentType, err: error }
      this.#deps.log.warn(fields, 'message of a controller rejected')
    }
  }

  #onMembers({ id }: ControlConnection, { body }: ChannelMessage): void {
    const update = readAddresses(body)
    if (update.isInterim) return
    const leaderBefore = this.#membership.leaderId
    const isChanged = this.#membership.onMembers({ ...update, senderId: id })
    this.#logLeader(leaderBefore)
    if (isChanged) this.#onMembersChanged({ from: id, index: String(update.index) })
    else this.#reconcile()
    if (this.#membership.isDisputed || update.controllers.length === 0) this.#ask()
    else this.#stopAsking()
  }

  #onLeader({ id }: ControlConnection): void {
    const leaderBefore = this.#membership.leaderId
    this.#membership.onLeader(id)
    this.#logLeader(leaderBefore)
  }

  #logLeader(before: string | null): void {
    const { leaderId } = this.#membership
    if (leaderId !== before) this.#deps.log.info({ controllerId: leaderId }, 'leader changed')
  }

  #onMembersChanged(fields: Readonly<Record<string, unknown>>): void {
    const { controllers, removed } = this.#membership
    const ids = controllers.map((one) => one.id)
    const removedIds = removed.map((one) => one.id)
    this.#deps.log.info(
      { ...fields, controllers: ids, removed: removedIds },
      'members of the cluster updated',
    )
    const before = this.#reportedApis
    this.#forgetApis()
    this.#reconcile()
    this.#save()
    if (this.#reportedApis.join() !== before.join()) this.#deps.onApis()
  }

  /** Forgets the client APIs of a removed controller, which must not issue certificates. */
  #forgetApis(): void {
    const { apis } = this.#membership
    const dropped = new Set(this.#reportedApis.filter((api) => !apis.includes(api)))
    this.#reportedApis = apis
    // @guard router-captured--removed-api
    this.#answeredApis = this.#answeredApis.filter((api) => !dropped.has(api))
  }

  /**
   * Starts dialers for controllers that are new members. Disconnects controllers that are not
   * members, and controllers whose key differs from the known key.
   */
  #reconcile(): void {
    const { controllers } = this.#membership
    const free = new Set(this.#dialers)
    const missing = controllers.filter((known) => {
      const dialer = this.#dialerOf(known.id, free)
      if (dialer === undefined) return true
      free.delete(dialer)
      this.#dialers.add(dialer)
      dialer.id = known.id
      dialer.addresses = this.#membership.dialAddresses(known)
      return false
    })
    for (const dialer of free) {
      this.#dialers.delete(dialer)
      dialer.stop('the controller is no longer a member')
    }
    for (const known of missing) {
      this.#add({ id: known.id, addresses: this.#membership.dialAddresses(known) }).start()
    }
    for (const { id, keySha256, channel } of this.connections) {
      const fault = this.#isMember(id) ? this.refusal(id, keySha256) : 'it is no longer a member'
      if (fault !== null) channel.close(fault)
    }
  }

  /**
   * The dialer of the controller. If the controller responded at a configured address, the dialer
   * for that address becomes its dialer.
   */
  #dialerOf(id: string, free: ReadonlySet<ControllerDialer>): ControllerDialer | undefined {
    const met = this.#allDialers().find((dialer) => dialer.connection?.id === id)
    if (met === undefined) return [...free].find((dialer) => dialer.id === id)
    for (const [address, dialer] of this.#endpointDialers) {
      if (dialer !== met) continue
      this.#endpointDialers.delete(address)
      this.#addEndpoint(address, configuredEndpointAfterMs)
    }
    return met
  }

  /**
   * Requests the lists of members from all controllers, and repeats this until no list differs from
   * the known members.
   */
  #ask(): void {
    if (this.#isStopped || this.#askTimer !== null) return
    for (const { channel } of this.connections) {
      channel.send({ contentType: controlContentType.requestClusterMembers })
    }
    this.#askTimer = setTimeout(() => {
      this.#askTimer = null
      if (this.#membership.isDisputed) this.#ask()
    }, controllerLimits.membersAskedEveryMs)
  }

  #stopAsking(): void {
    if (this.#askTimer !== null) clearTimeout(this.#askTimer)
    this.#askTimer = null
  }

  #save(): void {
    const { controllers, removed } = this.#membership
    const addresses = controllers.flatMap((one) => one.addresses)
    const endpoints = controllers.length > 0 ? addresses : this.#endpoints
    const apis = [...new Set([...this.#answeredApis, ...this.#membership.apis])]
    const trustDomain = this.#trustDomain
    const known = { endpoints, controllers, removed, apis, trustDomain }
    try {
      writeEndpoints(this.#deps.endpointsFile, known)
    } catch (error) {
      this.#deps.log.error(
        { path: this.#deps.endpointsFile, err: error },
        'cannot write the endpoints file; after a restart this router may look for controllers that are gone. Make its folder writable, or name another with ctrl.endpointsFile',
      )
    }
  }
}

function knownOf({
  endpointsFile,
  configuredEndpoints,
  log,
}: ControllerManagerDeps): KnownEndpoints {
  const read = readEndpoints(endpointsFile)
  if (read.kind === 'known') return read.known
  if (read.kind === 'damaged') {
    log.warn(
      { path: endpointsFile, reason: read.reason },
      'the endpoints file cannot be used; using the controllers of the configuration. It is written again once a controller is reached',
    )
  }
  const none = { controllers: [], removed: [], apis: [] }
  return { endpoints: configuredEndpoints, ...none, trustDomain: null }
}
