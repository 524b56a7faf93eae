import type { Channel, Outgoing } from '../../channel/channel.ts'
import { SendQueue } from '../../channel/frame-writer.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { circuitMessage } from '../forward/payload.ts'

/** Messages that may wait at a link: those that carry circuits, and acknowledgements. */
export interface LinkQueues {
  readonly payloadsMax: number
  readonly acknowledgementsMax: number
}

export interface LinkFields {
  /** Drawn by the router that dialed. */
  readonly id: string
  readonly peerId: string
  /** Grows with each dial. */
  readonly iteration: number
  /** By this router. */
  readonly isDialed: boolean
  readonly dialAddress: string
  readonly localAddress: string
  readonly remoteAddress: string
  readonly channel: Channel
  readonly queues: LinkQueues
}

/** A channel to another router. */
export class Link implements Omit<LinkFields, 'queues'> {
  readonly id: string
  readonly peerId: string
  readonly iteration: number
  readonly isDialed: boolean
  readonly dialAddress: string
  readonly localAddress: string
  readonly remoteAddress: string
  readonly channel: Channel
  readonly #payloads: SendQueue
  readonly #acknowledgements: SendQueue

  constructor(fields: LinkFields) {
    this.id = fields.id
    this.peerId = fields.peerId
    this.iteration = fields.iteration
    this.isDialed = fields.isDialed
    this.dialAddress = fields.dialAddress
    this.localAddress = fields.localAddress
    this.remoteAddress = fields.remoteAddress
    this.channel = fields.channel
    this.#payloads = new SendQueue(fields.queues.payloadsMax)
    this.#acknowledgements = new SendQueue(fields.queues.acknowledgementsMax)
  }

  /** How long the other router has answered no heartbeat, ms. */
  get silentForMs(): number {
    return this.channel.silentForMs
  }

  /** The same as that of its channel, with so many messages of its kind as the options let wait. */
  trySend(outgoing: Outgoing, queuedBytesMax: number): boolean {
    const isAcknowledgement = outgoing.contentType === circuitMessage.acknowledgement
    const queue = isAcknowledgement ? this.#acknowledgements : this.#payloads
    return this.channel.trySend(outgoing, queuedBytesMax, queue)
  }

  /** The same as that of its channel. */
  onceWritable(callback: () => void): void {
    this.channel.onceWritable(callback)
  }
}

/** Carrier of circuits over the links. */
export interface LinkUser {
  addLink(link: Link): void
  removeLink(link: Link): void
  onLinkMessage(link: Link, message: ChannelMessage): void
}

export interface LinkHooks {
  readonly onEstablished: (link: Link) => void
  readonly onLost: (link: Link, reason: string, isDuplicate: boolean) => void
}

/**
 * The links of this router, one to each other router. When both dial each other, both keep the one
 * with the smaller id, so they agree without a word.
 */
export class LinkRegistry {
  readonly #byPeer = new Map<string, Link>()
  readonly #hooks: LinkHooks

  constructor(hooks: LinkHooks) {
    this.#hooks = hooks
  }

  get links(): readonly Link[] {
    return [...this.#byPeer.values()]
  }

  has(peerId: string): boolean {
    return this.#byPeer.has(peerId)
  }

  /** @returns why the caller closes the new one; null: it is there. */
  add(link: Link): string | null {
    // Controllers route circuits by the id, which is chosen by the router that dials.
    const isTaken = this.links.some(({ id, peerId }) => id === link.id && peerId !== link.peerId)
    if (isTaken) return 'another router has a link with this id'
    const other = this.#byPeer.get(link.peerId)
    if (other !== undefined && !other.channel.isClosed && other.id < link.id) {
      return 'a link with a smaller id exists already'
    }
    this.#byPeer.set(link.peerId, link)
    if (other !== undefined) {
      const reason = 'both routers dialed; the link of the other one is kept'
      this.#hooks.onLost(other, reason, true)
      other.channel.close(reason)
    }
    this.#hooks.onEstablished(link)
    return null
  }

  /** Its channel is closed. */
  remove(link: Link, reason: string): void {
    if (this.#byPeer.get(link.peerId) !== link) return
    this.#byPeer.delete(link.peerId)
    this.#hooks.onLost(link, reason, false)
  }

  /** @param iteration of the one that is meant; 0: of any. */
  closeById(linkId: string, iteration: number, reason: string): void {
    const link = this.links.find(({ id }) => id === linkId)
    if (link === undefined || (iteration > 0 && iteration < link.iteration)) return
    link.channel.close(reason)
  }

  closeOf(peerId: string, reason: string): void {
    this.#byPeer.get(peerId)?.channel.close(reason)
  }

  closeAll(reason: string): void {
    for (const { channel } of this.links) channel.close(reason)
  }
}
