import type { Channel } from '../../channel/channel.ts'
import { SendQueue } from '../../channel/frame-writer.ts'
import type { LinkGroup, LinkSocketType } from '../../channel/messages/links.ts'
import { circuitHeader, circuitMessage } from '../../channel/messages/payload.ts'
import type { Outgoing } from '../../channel/frame.ts'

/** Messages of each kind that may wait at one socket of a link. */
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
  /** True: this router dialed it. */
  readonly isDialed: boolean
  readonly dialAddress: string
  readonly localAddress: string
  readonly remoteAddress: string
  /** Its first socket: the link ends with it. */
  readonly channel: Channel
  readonly queues: LinkQueues
  /** Null: it has one socket for good. */
  readonly group?: LinkGroup | null
}

interface LinkSocket {
  readonly type: LinkSocketType
  readonly channel: Channel
  readonly payloads: SendQueue
  readonly acknowledgements: SendQueue
}

/** A channel to another router: one socket, or several of which the first one keeps it. */
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
  /** Called when a further socket has closed. */
  onSocketLost: () => void = () => undefined
  readonly #queues: LinkQueues
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

  /** How long the other router has answered no heartbeat, ms. */
  get silentForMs(): number {
    return this.channel.silentForMs
  }

  /** How long messages wait at the socket where they wait longest, ms. */
  get queuedForMs(): number {
    const sockets = [...this.#payloadSockets, ...this.#acknowledgementSockets]
    return Math.max(0, ...sockets.map(({ channel }) => channel.stalledForMs))
  }

  /** Its sockets, the first one among them. */
  get socketCount(): number {
    return this.#payloadSockets.length + this.#acknowledgementSockets.length
  }

  socketsOf(type: LinkSocketType): number {
    const sockets = type === 'link.ack' ? this.#acknowledgementSockets : this.#payloadSockets
    return sockets.length
  }

  /** A further socket, whose channel is open. */
  addSocket(channel: Channel, type: LinkSocketType): void {
    const socket = this.#socketOf(channel, type)
    if (type === 'link.ack') {
      this.#acknowledgementSockets = [...this.#acknowledgementSockets, socket]
    } else this.#payloadSockets = [...this.#payloadSockets, socket]
  }

  /** Its channel is closed. */
  removeSocket(channel: Channel): void {
    const isOther = (socket: LinkSocket): boolean => socket.channel !== channel
    const before = this.socketCount
    this.#payloadSockets = this.#payloadSockets.filter(isOther)
    this.#acknowledgementSockets = this.#acknowledgementSockets.filter(isOther)
    if (this.socketCount < before) this.onSocketLost()
  }

  /** Closes all of its sockets, the first one last. */
  close(reason: string): void {
    this.onSocketLost = () => undefined
    for (const { channel } of [...this.#acknowledgementSockets, ...this.#payloadSockets]) {
      if (channel !== this.channel) channel.close(reason)
    }
    this.channel.close(reason)
  }

  /**
   * The same as that of the channel of one of its sockets, with so many messages of its kind as the
   * options let wait. Messages of one circuit take the same socket, and so keep their order.
   */
  trySend(outgoing: Outgoing, queuedBytesMax: number): boolean {
    const isAcknowledgement = outgoing.contentType === circuitMessage.acknowledgement
    const isApart = isAcknowledgement && this.#acknowledgementSockets.length > 0
    const socket = chosen(isApart ? this.#acknowledgementSockets : this.#payloadSockets, outgoing)
    if (socket === undefined) return false
    const queue = isAcknowledgement ? socket.acknowledgements : socket.payloads
    return socket.channel.trySend(outgoing, queuedBytesMax, queue)
  }

  /** The same as that of its channels: when one of them has room. */
  onceWritable(callback: () => void): void {
    for (const { channel } of this.#payloadSockets) channel.onceWritable(callback)
  }

  /** Acknowledgements that wait behind payloads have the room of both. */
  #socketOf(channel: Channel, type: LinkSocketType): LinkSocket {
    const { payloadsMax, acknowledgementsMax } = this.#queues
    const behindMax = type === 'link.ack' ? 0 : payloadsMax
    return {
      type,
      channel,
      payloads: new SendQueue(payloadsMax),
      acknowledgements: new SendQueue(behindMax + acknowledgementsMax),
    }
  }
}

/** The socket of the circuit, by the last character of its id, which is drawn by chance. */
function chosen(sockets: readonly LinkSocket[], { headers }: Outgoing): LinkSocket | undefined {
  if (sockets.length < 2) return sockets[0]
  const circuitId = headers?.get(circuitHeader.circuitId)
  return sockets[(circuitId?.at(-1) ?? 0) % sockets.length]
}
