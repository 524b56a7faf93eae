import { fromBinary } from '@bufbuild/protobuf'
import type { OutboundMessage } from '../../channel/frame.ts'
import { readFlag } from '../../channel/headers.ts'
import { channelHeaderKey } from '../../channel/numbers.ts'
import { TaskPool } from '../../lib/bounds/task-pool.ts'
import type { Clock } from '../../lib/clock.ts'
import { formatHostPort } from '../../lib/text/names.ts'
import type { Random } from '../../lib/random.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { HttpProxy } from '../../lib/runtime/http-proxy.ts'
import type { CachedResolver } from '../../lib/runtime/cached-resolver.ts'
import type {
  ControlConnection,
  ControlMessageHandler,
  ControlMessageTable,
} from '../controllers/control-connection.ts'
import type { RouterIdentity } from '../identity/reloadable-identity.ts'
import { linkLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { TlsPortOpener } from '../../overlay/sockets/tls-port-opener.ts'
import { LinkAcceptor } from './link-acceptor.ts'
import { LinkDialer } from './link-dialer.ts'
import {
  linkFaultMessage,
  type PeerListener,
  readLinkFault,
  routerLinksMessage,
  verifyRouterMessage,
} from '../../channel/messages/links.ts'
import { linkChannelLimits, linkQueueLimits } from './link-options.ts'
import { LinkRegistry, type LinkTrafficHandler } from './link-registry.ts'
import type { Link } from './link.ts'
import { type DialedPeer, PeerDialer } from './peer-dialer.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import { PeerStateChangesSchema } from '../../../proto/gen/router_pb.ts'
import { parseAddress } from '../../config/router/values.ts'

type LinkConfig = NonNullable<RouterConfig['link']>

interface LinkManagerDeps {
  /** Proxy for outgoing connections; null: no proxy. */
  readonly proxy: HttpProxy | null
  readonly names?: CachedResolver
  readonly ports: TlsPortOpener
  /** Null if the configuration contains no links. */
  readonly config: RouterConfig['link']
  readonly dialing: Pick<RouterConfig['forwarder'], 'linkDialWorkerCount' | 'linkDialQueueLength'>
  readonly handshakeTimeoutMs: number
  readonly identity: () => RouterIdentity
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
  readonly connections: () => readonly ControlConnection[]
  readonly user: LinkTrafficHandler
}

/**
 * Format of the versions of peers. Like OpenZiti routers, this router does not dial a peer whose
 * version has another format.
 */
const VERSION = /^v?[0-9]+\.[0-9]+\.[0-9]+/

/**
 * The links to other routers: accepts links, dials the routers that controllers report, and reports
 * the links to controllers.
 */
export class LinkManager {
  readonly #deps: LinkManagerDeps
  readonly #registry: LinkRegistry
  readonly #acceptors: LinkAcceptor[] = []
  readonly #dialers = new Map<string, PeerDialer>()
  readonly #dials: TaskPool
  #isStopped = false

  constructor(deps: LinkManagerDeps) {
    this.#deps = deps
    this.#dials = new TaskPool({
      workersMax: deps.dialing.linkDialWorkerCount,
      waitingMax: deps.dialing.linkDialQueueLength,
    })
    this.#registry = new LinkRegistry({
      onEstablished: (link) => this.#onEstablished(link),
      onLost: (link, reason, isDuplicate) => this.#onLost(link, reason, isDuplicate),
    })
  }

  get links(): readonly Link[] {
    return this.#registry.links
  }

  /** Link listeners that controllers report to other routers. */
  get listeners(): readonly PeerListener[] {
    return (this.#deps.config?.listeners ?? [])
      .filter(({ bind }) => bind.protocol === 'tls')
      .map(({ bind, advertise, groups }) => ({
        address: `tls:${formatHostPort(advertise ?? bind)}`,
        groups,
      }))
  }

  /** Addresses of other routers that this router dials or has links to. */
  get peerAddresses(): readonly string[] {
    const dialed = [...this.#dialers.values()].flatMap(({ addresses }) => addresses)
    return [...dialed, ...this.links.map(({ remoteAddress }) => remoteAddress)]
  }

  /** @throws {ProgramFailure} when a listener cannot listen. */
  async start(): Promise<void> {
    const { config, log } = this.#deps
    if (config === null) return
    for (const [at, { bind, options }] of config.listeners.entries()) {
      const place = `link.listeners[${at}]`
      if (bind.protocol !== 'tls') {
        log.warn({}, `${place}: the protocol ${bind.protocol} is not supported; it is not opened`)
        continue
      }
      const acceptor = new LinkAcceptor({
        ...this.#deps,
        registry: this.#registry,
        limits: linkChannelLimits(config, options),
        queues: linkQueueLimits(config, options),
        helloTimeoutMs: options.connectTimeout ?? options.connectTimeoutMs,
        isVerified: (routerId, sha1) => this.#isVerified(routerId, sha1),
      })
      await acceptor.listen(bind, place)
      this.#acceptors.push(acceptor)
      log.info({ address: bind.text }, 'listening for links')
    }
  }

  renew(): void {
    for (const acceptor of this.#acceptors) acceptor.renew()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const dialer of this.#dialers.values()) dialer.stop()
    await Promise.all(this.#acceptors.map((acceptor) => acceptor.close()))
    this.#registry.closeAll('the router stops')
  }

  messages(): ControlMessageTable {
    return new Map<number, ControlMessageHandler>([
      [controlContentType.peerStateChange, (_, { body }) => this.#onPeers(readPeerChanges(body))],
      [controlContentType.fault, (_, { body }) => this.#onFault(readLinkFault(body))],
    ])
  }

  /** Reports all links that this router dialed to a controller that has just connected. */
  reportAll({ channel }: ControlConnection): void {
    const dialed = this.links.filter(({ isDialed }) => isDialed)
    channel.send(routerLinksMessage(dialed, true))
  }

  /** Handles reports about changes of other routers. */
  #onPeers(changes: readonly PeerChange[]): void {
    for (const change of changes) this.#onPeer(change)
  }

  /** Closes a link because a controller requested it. The router may dial it again. */
  #onFault(fault: { readonly id: string; readonly iteration: number } | null): void {
    if (fault === null) return
    this.#registry.closeById(fault.id, fault.iteration, 'a controller ended the link')
  }

  #onPeer({ id, state, version, listeners }: PeerChange): void {
    if (this.#isStopped || id === this.#deps.identity().id) return
    if (state === 'removed') {
      this.#dialers.get(id)?.stop()
      this.#dialers.delete(id)
      this.#registry.closeOf(id, 'the router was removed')
      return
    }
    const { config: section } = this.#deps
    const dialer = this.#dialers.get(id)
    const policy = this.#policyFor(listeners)
    if (state === 'unhealthy') {
      dialer?.setUnhealthy()
      return
    }
    if (policy === null || section === null || !VERSION.test(version)) return
    const peer = { id, addresses: policy.addresses, isHealthy: true, version }
    if (dialer !== undefined) dialer.update(peer)
    else if (this.#dialers.size < linkLimits.peersMax) {
      this.#dialers.set(id, this.#newDialer(section, policy.config, peer))
    }
  }

  /**
   * Selects the first dialer that has a group in common with a listener of the peer, and all
   * listeners that match this dialer.
   */
  #policyFor(
    listeners: readonly PeerListener[],
  ): { config: LinkConfig['dialers'][number]; addresses: readonly string[] } | null {
    for (const config of this.#deps.config?.dialers ?? []) {
      const addresses = listeners
        .filter(({ groups }) => sharesGroup(config.groups, groups))
        .map(({ address }) => address)
      if (addresses.length > 0) return { config, addresses }
    }
    return null
  }

  #newDialer(
    section: LinkConfig,
    config: LinkConfig['dialers'][number],
    peer: DialedPeer,
  ): PeerDialer {
    const { random, log } = this.#deps
    const dialer = new LinkDialer({ ...this.#deps, section, config, registry: this.#registry })
    return new PeerDialer(
      {
        config,
        random,
        log,
        isLinked: (peerId) => this.#registry.has(peerId),
        inTurn: (peerId, task) => this.#dials.run(peerId, task),
        dial: (to, target, signal) => dialer.dial(to, target, signal),
      },
      peer,
    )
  }

  /**
   * Whether a connected controller confirms that the certificate belongs to the router. Asks all of
   * them at the same time, and waits for the first confirmation.
   */
  async #isVerified(routerId: string, sha1: string): Promise<boolean> {
    const { connections } = this.#deps
    const { linkAdmissionMsMax } = linkLimits
    const asked = connections().map(async ({ channel }) => {
      const message = verifyRouterMessage(routerId, sha1)
      const reply = await channel.request(message, linkAdmissionMsMax)
      if (!readFlag(reply.headers, channelHeaderKey.resultSuccess)) throw new Error('not verified')
    })
    try {
      await Promise.any(asked)
      return true
    } catch {
      return false
    }
  }

  #onEstablished(link: Link): void {
    const { id, peerId, isDialed, iteration, remoteAddress } = link
    this.#deps.user.addLink(link)
    this.#deps.log.info(
      { linkId: id, routerId: peerId, isDialed, iteration, remoteAddress },
      'link established',
    )
    if (isDialed) this.#reportToControllers(routerLinksMessage([link], false))
  }

  #onLost(link: Link, reason: string, isDuplicate: boolean): void {
    const { id, peerId } = link
    this.#deps.user.removeLink(link)
    this.#deps.log.info({ linkId: id, routerId: peerId, reason, isDuplicate }, 'link lost')
    this.#reportToControllers(linkFaultMessage(link, isDuplicate))
    if (!isDuplicate && !this.#isStopped) this.#dialers.get(peerId)?.redial()
  }

  #reportToControllers(outgoing: OutboundMessage): void {
    for (const { channel } of this.#deps.connections()) channel.send(outgoing)
  }
}

/**
 * Whether the two lists have a group in common. If the other router lists none, it has the group
 * `default`.
 */
function sharesGroup(own: readonly string[], theirs: readonly string[]): boolean {
  const others = theirs.length === 0 ? ['default'] : theirs
  return own.some((group) => others.includes(group))
}

/** The state of another router according to a controller. */
interface PeerChange {
  readonly id: string
  readonly state: 'healthy' | 'unhealthy' | 'removed'
  readonly version: string
  readonly listeners: readonly PeerListener[]
}

const states = ['healthy', 'unhealthy', 'removed'] as const

/**
 * Reads the changes of other routers. Skips addresses that cannot be used for links.
 * @throws when the bytes cannot be decoded.
 */
export function readPeerChanges(body: Uint8Array): readonly PeerChange[] {
  const { peersMax, peerListenersMax } = linkLimits
  return fromBinary(PeerStateChangesSchema, body)
    .changes.slice(0, peersMax)
    .flatMap(({ id, state, version, listeners }): PeerChange[] => {
      const found = states[state]
      if (found === undefined || id === '') return []
      const usable = listeners
        .filter(({ address }) => parseAddress(address)?.protocol === 'tls')
        .slice(0, peerListenersMax)
        .map(({ address, groups }) => ({ address, groups }))
      return [{ id, state: found, version, listeners: usable }]
    })
}
