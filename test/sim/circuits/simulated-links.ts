import { Channel } from '../../../src/channel/channel.ts'
import { openDialedChannel } from '../../../src/channel/dial.ts'
import type { ChannelMessage, OutboundMessage } from '../../../src/channel/frame.ts'
import { helloAcceptedMessage } from '../../../src/channel/hello.ts'
import type { RouterConfig } from '../../../src/config/router/table.ts'
import { TaskPool } from '../../../src/lib/bounds/task-pool.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import type { Random } from '../../../src/lib/random.ts'
import type {
  ControlConnection,
  ControlMessageHandler,
  ControlMessageTable,
} from '../../../src/router/controllers/control-connection.ts'
import type { Forwarder } from '../../../src/router/forward/forwarder.ts'
import {
  linkFaultMessage,
  linkHelloMessage,
  readLinkFault,
  readLinkHello,
  routerLinksMessage,
} from '../../../src/channel/messages/links.ts'
import { linkChannelLimits, linkQueueLimits } from '../../../src/router/links/link-options.ts'
import { LinkRegistry } from '../../../src/router/links/link-registry.ts'
import { Link, type LinkFields } from '../../../src/router/links/link.ts'
import { type DialedPeer, PeerDialer } from '../../../src/router/links/peer-dialer.ts'
import type { ProgramLogger } from '../../../src/overlay/logger.ts'
import type { Frames } from './frames.ts'
import type { SimulatedSocket } from './simulated-socket.ts'
import { readPeerChanges } from '../../../src/router/links/link-manager.ts'
import { controlContentType } from '../../../src/channel/messages/control.ts'

type LinkConfig = NonNullable<RouterConfig['link']>

export interface SimulatedLinksParts {
  readonly routerId: string
  /** Routers with which this router may have links. */
  readonly peerIds: ReadonlySet<string>
  readonly config: LinkConfig
  readonly dialing: Pick<RouterConfig['forwarder'], 'linkDialWorkerCount' | 'linkDialQueueLength'>
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
  readonly connections: () => readonly ControlConnection[]
  readonly forwarder: Forwarder
  readonly frames: Frames
  /** Called when a link to that router comes up or goes down. */
  readonly onLink: (peerId: string, event: 'up' | 'down') => void
  readonly connect: (peerId: string) => SimulatedSocket
}

/** A link that drops or delays circuit frames at random, as a router on the path would. */
class LossyLink extends Link {
  readonly #frames: Frames

  constructor(fields: LinkFields, frames: Frames) {
    super(fields)
    this.#frames = frames
  }

  override trySend(outgoing: OutboundMessage, queuedBytesMax: number): boolean {
    const delays = this.#frames.delaysOf()
    for (const delayMs of delays.slice(1)) this.#later(delayMs, outgoing, queuedBytesMax)
    const [firstMs] = delays
    if (firstMs === undefined) return !this.channel.isClosed
    if (firstMs === 0) return super.trySend(outgoing, queuedBytesMax)
    this.#later(firstMs, outgoing, queuedBytesMax)
    return !this.channel.isClosed
  }

  #later(delayMs: number, outgoing: OutboundMessage, queuedBytesMax: number): void {
    setTimeout(() => super.trySend(outgoing, queuedBytesMax), delayMs)
  }
}

/**
 * The links of a simulated router: production registry, dialers and messages over simulated
 * sockets. The socket gives the identity of the other end, as a certificate would.
 */
export class SimulatedLinks {
  readonly #parts: SimulatedLinksParts
  readonly #registry: LinkRegistry
  readonly #dialers = new Map<string, PeerDialer>()
  readonly #dials: TaskPool
  readonly #dialing: LinkConfig['dialers'][number]

  constructor(parts: SimulatedLinksParts) {
    this.#parts = parts
    const [dialing] = parts.config.dialers
    if (dialing === undefined) throw new Error('the configuration has a dialer')
    this.#dialing = dialing
    this.#dials = new TaskPool({
      workersMax: parts.dialing.linkDialWorkerCount,
      waitingMax: parts.dialing.linkDialQueueLength,
    })
    this.#registry = new LinkRegistry({
      onEstablished: (link) => {
        parts.forwarder.addLink(link)
        parts.onLink(link.peerId, 'up')
        if (link.isDialed) this.#reportToControllers(routerLinksMessage([link], false))
      },
      onLost: (link, _reason, isDuplicate) => {
        parts.forwarder.removeLink(link)
        parts.onLink(link.peerId, 'down')
        this.#reportToControllers(linkFaultMessage(link, isDuplicate))
        if (!isDuplicate) this.#dialers.get(link.peerId)?.redial()
      },
    })
  }

  get links(): readonly Link[] {
    return this.#registry.links
  }

  messages(): ControlMessageTable {
    return new Map<number, ControlMessageHandler>([
      [
        controlContentType.peerStateChange,
        (_, { body }) => {
          for (const change of readPeerChanges(body)) this.#onPeer(change)
        },
      ],
      [
        controlContentType.fault,
        (_, { body }) => {
          const fault = readLinkFault(body)
          if (fault !== null) this.#registry.closeById(fault.id, fault.iteration, 'told to')
        },
      ],
    ])
  }

  reportAll({ channel }: ControlConnection): void {
    channel.send(
      routerLinksMessage(
        this.links.filter(({ isDialed }) => isDialed),
        true,
      ),
    )
  }

  /** Accepts a connection of another router. */
  accept(socket: SimulatedSocket): void {
    const { clock, config, routerId } = this.#parts
    let link: Link | null = null
    const channel: Channel = new Channel({
      socket: socket.asSocket,
      limits: linkChannelLimits(config, this.#dialing.options),
      clock,
      onHello: (message) => {
        const hello = readLinkHello(message)
        if (hello?.routerId !== socket.peer.name || hello.dialedId !== routerId) {
          channel.close('its hello says otherwise')
          return
        }
        const { linkId: id, iteration } = hello
        const answered = { token: id, version: null, type: '', group: null }
        const made = this.#link({ id, iteration, peerId: hello.routerId, isDialed: false }, channel)
        channel.open(
          helloAcceptedMessage({ ...answered, headers: message.headers }, routerId, new Map()),
        )
        const refusal = this.#registry.add(made)
        if (refusal === null) link = made
        else channel.close(refusal)
      },
      onMessage: (message) => this.#onMessage(link, message),
      onClose: (reason) => {
        if (link !== null) this.#registry.remove(link, reason)
      },
    })
  }

  #onPeer({ id, state, version, listeners }: ReturnType<typeof readPeerChanges>[number]): void {
    const { log, random, peerIds, routerId } = this.#parts
    if (id === routerId || !peerIds.has(id)) return
    const dialer = this.#dialers.get(id)
    if (state !== 'healthy') {
      dialer?.setUnhealthy()
      return
    }
    const addresses = listeners.map(({ address }) => address)
    const peer = { id, version, addresses, isHealthy: true }
    if (dialer !== undefined) {
      dialer.update(peer)
      return
    }
    const made = new PeerDialer(
      {
        config: this.#dialing,
        random,
        log,
        isLinked: (peerId) => this.#registry.has(peerId),
        inTurn: (peerId, task) => this.#dials.run(peerId, task),
        dial: (to, target, signal) => this.#dial(to, target, signal),
      },
      peer,
    )
    this.#dialers.set(id, made)
  }

  async #dial(
    peer: DialedPeer,
    target: { readonly address: string; readonly linkId: string; readonly iteration: number },
    signal: AbortSignal,
  ): Promise<Link> {
    const { clock, connect, routerId, config } = this.#parts
    const { options } = this.#dialing
    let link: Link | null = null
    const { channel } = await openDialedChannel(connect(peer.id).asSocket, {
      hello: linkHelloMessage({
        ...target,
        routerId,
        dialedId: peer.id,
        dialedVersion: peer.version,
      }),
      limits: linkChannelLimits(config, options),
      clock,
      signal,
      timeoutMs: options.connectTimeoutMs,
      onMessage: (message) => this.#onMessage(link, message),
      onClose: (reason) => {
        if (link !== null) this.#registry.remove(link, reason)
      },
    })
    const { linkId: id, iteration } = target
    const made = this.#link({ id, iteration, peerId: peer.id, isDialed: true }, channel)
    link = made
    const refusal = this.#registry.add(made)
    if (refusal !== null) channel.close(refusal)
    else if (channel.isClosed) this.#registry.remove(made, 'closed at once')
    return made
  }

  #link(
    fields: Pick<LinkFields, 'id' | 'iteration' | 'peerId' | 'isDialed'>,
    channel: Channel,
  ): Link {
    const addresses = { dialAddress: '', localAddress: '', remoteAddress: '' }
    const { config, frames } = this.#parts
    const queues = linkQueueLimits(config, this.#dialing.options)
    return new LossyLink({ ...fields, ...addresses, channel, queues }, frames)
  }

  #onMessage(link: Link | null, message: ChannelMessage): null {
    if (link !== null) this.#parts.forwarder.onLinkMessage(link, message)
    return null
  }

  #reportToControllers(outgoing: OutboundMessage): void {
    for (const { channel } of this.#parts.connections()) channel.send(outgoing)
  }
}
