import type { ChannelMessage } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Random } from '../../lib/random.ts'
import { routerProgramLimits } from '../limits.ts'
import type { RouterProgramLogger } from '../logger.ts'
import type { ControlConnection, ControlHandlers } from './control-connection.ts'
import { ControllerDialer, type Dial } from './controller-dialer.ts'
import type { DialedController } from './dial-controller.ts'
import { type KnownEndpoints, readEndpoints, writeEndpoints } from './endpoints-file.ts'
import { ControllerMembership } from './membership.ts'
import { controlMessage, readAddresses, readLeaderIndex } from './messages.ts'

export interface ControllersParts {
  readonly endpointsFile: string
  /** Used when the file is not there or cannot be read. */
  readonly configuredEndpoints: readonly string[]
  readonly dial: Dial
  readonly clock: Clock
  readonly random: Random
  readonly log: RouterProgramLogger
  readonly handlers: ControlHandlers
}

/**
 * The controllers of the cluster: every current member is kept dialed, one channel each, and the
 * members are kept in a file, so that a router finds its cluster again though every member has
 * changed since it was configured.
 */
export class Controllers {
  readonly #parts: ControllersParts
  readonly #membership: ControllerMembership
  readonly #dialers = new Set<ControllerDialer>()
  readonly #connections = new Map<string, ControlConnection>()
  #apis: readonly string[]
  readonly #endpoints: readonly string[]
  #trustDomain: string | null
  #askTimer: NodeJS.Timeout | null = null
  #isStopped = false

  constructor(parts: ControllersParts) {
    this.#parts = parts
    const known = knownOf(parts)
    this.#endpoints = known.endpoints
    this.#apis = known.apis
    this.#trustDomain = known.trustDomain
    this.#membership = new ControllerMembership(known.controllers)
  }

  /** Connections that are open. */
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
   * Places where the client API of controllers may be: where it was met, then on the hosts of the
   * members under the same ports, as the controller that was met may have left the cluster since.
   */
  get apis(): readonly string[] {
    const ports = new Set(this.#apis.map((api) => new URL(api).port || '443'))
    const hosts = this.#membership.controllers.flatMap(({ addresses }) =>
      addresses.map((address) => address.slice('tls:'.length).replace(/:\d+$/, '')),
    )
    const guessed = hosts.flatMap((host) =>
      [...ports].map((port) => new URL(`https://${host}:${port}`).origin),
    )
    return [...new Set([...this.#apis, ...guessed])].slice(0, routerProgramLimits.apisMax)
  }

  /** It has answered: it is asked first from now on, and after a restart too. */
  rememberApi(api: string): void {
    if (this.#apis[0] === api) return
    this.#apis = [api, ...this.#apis.filter((other) => other !== api)]
    this.#save()
  }

  start(): void {
    const { controllers } = this.#membership
    const targets =
      controllers.length > 0
        ? controllers.map(({ id, addresses }) => ({ id, addresses }))
        : this.#endpoints.map((address) => ({ id: null, addresses: [address] }))
    for (const target of targets) this.#add(target).start()
  }

  stop(): void {
    this.#isStopped = true
    if (this.#askTimer !== null) clearTimeout(this.#askTimer)
    for (const dialer of this.#dialers) dialer.stop('the router stops')
  }

  #add(target: { id: string | null; addresses: readonly string[] }): ControllerDialer {
    const { dial, clock, random, log } = this.#parts
    const dialer = new ControllerDialer(
      {
        dial,
        clock,
        random,
        log,
        onConnected: (from, connection) => this.#onConnected(from, connection),
        onMessage: (connection, message) => this.#onMessage(connection, message),
        onClosed: (connection, reason) => this.#onClosed(connection, reason),
        isWanted: ({ id }) => id === null || !this.#connections.has(id),
      },
      target,
    )
    this.#dialers.add(dialer)
    return dialer
  }

  #onConnected(dialer: ControllerDialer, connection: DialedController): boolean {
    const { id, address, version } = connection
    if (this.#connections.has(id)) return false
    this.#connections.set(id, connection)
    this.#parts.log.info({ controllerId: id, address, version }, 'connected to controller')
    if (this.#trustDomain === null) {
      this.#trustDomain = connection.trustDomain
      this.#save()
    }
    for (const other of this.#dialers) if (other !== dialer) other.wake()
    this.#parts.handlers.onConnected(connection)
    return true
  }

  #onClosed(connection: ControlConnection, reason: string): void {
    const { id, address } = connection
    if (this.#connections.get(id) !== connection) return
    this.#connections.delete(id)
    this.#parts.log.info({ controllerId: id, address, reason }, 'disconnected from controller')
    this.#parts.handlers.onClosed(connection, reason)
  }

  #onMessage(connection: ControlConnection, message: ChannelMessage): void {
    try {
      switch (message.contentType) {
        case controlMessage.updateCtrlAddresses:
          this.#onMembers(connection, message)
          return
        case controlMessage.updateClusterLeader:
          this.#onLeader(connection, message)
          return
        default:
          this.#parts.handlers.onMessage(connection, message)
      }
    } catch (error) {
      // A message that cannot be read must not end the others.
      const { contentType } = message
      const fields = { controllerId: connection.id, contentType, err: error }
      this.#parts.log.warn(fields, 'message of a controller rejected')
    }
  }

  #onMembers({ id, address }: ControlConnection, { body }: ChannelMessage): void {
    const leaderBefore = this.#membership.leaderId
    const told = { ...readAddresses(body), senderId: id, dialedAddress: address }
    const { isChanged, asksLeader } = this.#membership.onMembers(told)
    this.#tellLeader(leaderBefore)
    if (told.isLeader) this.#stopAsking()
    if (asksLeader) this.#askLeader()
    if (!isChanged) return
    const ids = this.#membership.controllers.map((one) => one.id)
    const fields = { from: id, index: String(told.index), controllers: ids }
    this.#parts.log.info(fields, 'members of the cluster updated')
    this.#reconcile()
    this.#save()
  }

  #onLeader({ id }: ControlConnection, { body }: ChannelMessage): void {
    const leaderBefore = this.#membership.leaderId
    this.#membership.onLeader(id, readLeaderIndex(body))
    this.#tellLeader(leaderBefore)
  }

  #tellLeader(before: string | null): void {
    const { leaderId } = this.#membership
    if (leaderId !== before) this.#parts.log.info({ controllerId: leaderId }, 'leader changed')
  }

  /** Dials who is new, and lets go of who is no member any more. */
  #reconcile(): void {
    const { controllers } = this.#membership
    const free = new Set(this.#dialers)
    const missing = controllers.filter(({ id, addresses }) => {
      const candidates = [...free]
      const dialer =
        candidates.find((one) => one.connection?.id === id) ??
        candidates.find((one) => one.id === id)
      if (dialer === undefined) return true
      free.delete(dialer)
      dialer.id = id
      dialer.addresses = addresses
      return false
    })
    for (const dialer of free) {
      this.#dialers.delete(dialer)
      dialer.stop('the controller is no longer a member')
    }
    for (const target of missing) this.#add(target).start()
  }

  /** The leader when it is known and connected; else whoever is, as one of them may lead. */
  #askLeader(): void {
    if (this.#isStopped) return
    const { leaderId } = this.#membership
    const leader = leaderId === null ? undefined : this.#connections.get(leaderId)
    for (const { channel } of leader === undefined ? this.connections : [leader]) {
      channel.send({ contentType: controlMessage.requestClusterMembers })
    }
    this.#stopAsking()
    const { membersAskedEveryMs } = routerProgramLimits
    this.#askTimer = setTimeout(() => this.#askLeader(), membersAskedEveryMs)
  }

  #stopAsking(): void {
    if (this.#askTimer !== null) clearTimeout(this.#askTimer)
    this.#askTimer = null
  }

  #save(): void {
    const { controllers } = this.#membership
    const addresses = controllers.flatMap((one) => one.addresses)
    const endpoints = controllers.length > 0 ? addresses : this.#endpoints
    const known = { endpoints, controllers, apis: this.#apis, trustDomain: this.#trustDomain }
    try {
      writeEndpoints(this.#parts.endpointsFile, known)
    } catch (error) {
      this.#parts.log.error(
        { path: this.#parts.endpointsFile, err: error },
        'cannot write the endpoints file; after a restart this router may look for controllers that are gone. Make its folder writable, or name another with ctrl.endpointsFile',
      )
    }
  }
}

function knownOf({ endpointsFile, configuredEndpoints, log }: ControllersParts): KnownEndpoints {
  const read = readEndpoints(endpointsFile)
  if (read.kind === 'known') return read.known
  if (read.kind === 'damaged') {
    log.warn(
      { path: endpointsFile, reason: read.reason },
      'the endpoints file cannot be used; using the controllers of the configuration. It is written again once a controller is reached',
    )
  }
  return { endpoints: configuredEndpoints, controllers: [], apis: [], trustDomain: null }
}
