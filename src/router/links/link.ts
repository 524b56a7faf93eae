import type { Channel } from '../../channel/channel.ts'
import { SendQueueCounter } from '../../channel/frame-writer.ts'
import type { LinkGroup, LinkSocketType } from '../../channel/messages/links.ts'
import { payloadHeaderKey, circuitContentType } from '../../channel/messages/payload.ts'
import type { OutboundMessage } from '../../channel/frame.ts'

/** Maximum numbers of messages of each kind that may wait at one socket. */
export interface LinkQueueLimits {
  readonly payloadsMax: number
  readonly acknowledgementsMax: number
}

export interface LinkFields {
  /** Link ID, which the dialing router generates. */
  readonly id: string
  readonly peerId: string
  /** Number of the dial that created the link, counted by the dialing router. */
  readonly iteration: number
  /** True if this router dialed the link. */
  readonly isDialed: boolean
  readonly dialAddress: string
  readonly localAddress: string
  readonly remoteAddress: string
  /** The first socket of the link; the link ends when this socket closes. */
  readonly channel: Channel
  readonly queues: LinkQueueLimits
  /** Group to which additional sockets belong; null if the link can have only one socket. */
  readonly group?: LinkGroup | null
}

interface LinkSocket {
  readonly type: LinkSocketType
  readonly channel: Channel
  readonly payloads: SendQueueCounter
  readonly acknowledgements: SendQueueCounter
}

/**
 * A link to another router over one or several sockets; the link ends when its first socket closes.
 */
export class Link implements Omit<LinkFields, 'queues'> {
  readonly id: string
  readonly peerId: string
  readonly iteration: number
  readonly isDialed: boolean
  readonly dialAddress: string
  readonly localAddress: string
  readonly remoteAddress: string
  readonly channel: Channel
  readonly group: LinkGroup | null
  /** Called when an additional socket has closed. */
  onSocketLost: () => void = () => undefined
  readonly #queues: LinkQueueLimits
  #payloadSockets: readonly LinkSocket[]
  #acknowledgementSockets: readonly LinkSocket[] = []

  constructor(fields: LinkFields) {
    this.id = fields.id
    this.peerId = fields.peerId
    this.iteration = fields.iteration
    this.isDialed = fields.isDialed
    this.dialAddress = fields.dialAddress
    this.localAddress = fields.localAddress
    this.remoteAddress = fields.remoteAddress
    this.channel = fields.channel
    this.group = fields.group ?? null
    this.#queues = fields.queues
    this.#payloadSockets = [this.#socketOf(fields.channel, 'link.default')]
  }

  /** Time since the peer last answered a heartbeat, ms. */
  get silentForMs(): number {
    return this.channel.silentForMs
  }

  /** Longest time for which one of the sockets has accepted none of its waiting messages, ms. */
  get queuedForMs(): number {
    const sockets = [...this.#payloadSockets, ...this.#acknowledgementSockets]
    return Math.max(0, ...sockets.map(({ channel }) => channel.stalledForMs))
  }

  /** Number of sockets, including the first one. */
  get socketCount(): number {
    return this.#payloadSockets.length + this.#acknowledgementSockets.length
  }

  socketsOf(type: LinkSocketType): number {
    const sockets = type === 'link.ack' ? this.#acknowledgementSockets : this.#payloadSockets
    return sockets.length
  }

  /** Adds a socket with an open channel. */
  addSocket(channel: Channel, type: LinkSocketType): void {
    const socket = this.#socketOf(channel, type)
    if (type === 'link.ack') {
      this.#acknowledgementSockets = [...this.#acknowledgementSockets, socket]
    } else this.#payloadSockets = [...this.#payloadSockets, socket]
  }

  /** Removes a socket whose channel has closed. */
  removeSocket(channel: Channel): void {
    const isOther = (socket: LinkSocket): boolean => socket.channel !== channel
    const before = this.socketCount
    this.#payloadSockets = this.#payloadSockets.filter(isOther)
    this.#acknowledgementSockets = this.#acknowledgementSockets.filter(isOther)
    if (this.socketCount < before) this.onSocketLost()
  }

  /** Closes all sockets of the link, the first one last. */
  close(reason: string): void {
    this.onSocketLost = () => undefined
    for (const { channel } of [...this.#acknowledgementSockets, ...this.#payloadSockets]) {
      if (channel !== this.channel) channel.close(reason)
    }
    this.channel.close(reason)
  }

  /**
   * Sends a message over one of the link's sockets, see `Channel.trySend`, within the limits on
   * waiting messages. As long as the link has the same sockets, all payloads of one circuit use the
   * same socket and thus keep their order.
   */
  trySend(outgoing: OutboundMessage, queuedBytesMax: number): boolean {
    const isAcknowledgement = outgoing.contentType === circuitContentType.acknowledgement
    const isApart = isAcknowledgement && this.#acknowledgementSockets.length > 0
    const socket = chosen(isApart ? this.#acknowledgementSockets : this.#payloadSockets, outgoing)
    if (socket === undefined) return false
    const queue = isAcknowledgement ? socket.acknowledgements : socket.payloads
    return socket.channel.trySend(outgoing, queuedBytesMax, queue)
  }

  /**
   * Calls the callback once for each socket for payloads that can send more, see
   * `Channel.onceWritable`.
   */
  onceWritable(callback: () => void): void {
    for (const { channel } of this.#payloadSockets) channel.onceWritable(callback)
  }

  /**
   * If a socket is used for both payloads and acknowledgments, the queue limit for acknowledgments
   * is the sum of both limits.
   */
  #socketOf(channel: Channel, type: LinkSocketType): LinkSocket {
    const { payloadsMax, acknowledgementsMax } = this.#queues
    const behindMax = type === 'link.ack' ? 0 : payloadsMax
    return {
      type,
      channel,
      payloads: new SendQueueCounter(payloadsMax),
      acknowledgements: new SendQueueCounter(behindMax + acknowledgementsMax),
    }
  }
}

/** Selects the socket by the last character of the circuit ID, because circuit IDs are random. */
function chosen(
  sockets: readonly LinkSocket[],
  { headers }: OutboundMessage,
): LinkSocket | undefined {
  if (sockets.length < 2) return sockets[0]
  const circuitId = headers?.get(payloadHeaderKey.circuitId)
  return sockets[(circuitId?.at(-1) ?? 0) % sockets.length]
}
