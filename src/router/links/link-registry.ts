import type { Channel } from '../../channel/channel.ts'

/** A channel to another router. */
export interface Link {
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
}

export interface LinkHooks {
  readonly onEstablished: (link: Link) => void
  readonly onLost: (link: Link, isDuplicate: boolean) => void
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

  /** @returns false when there is one that stays; the caller closes the new one. */
  add(link: Link): boolean {
    const other = this.#byPeer.get(link.peerId)
    if (other !== undefined && !other.channel.isClosed && other.id < link.id) return false
    this.#byPeer.set(link.peerId, link)
    if (other !== undefined) {
      this.#hooks.onLost(other, true)
      other.channel.close('both routers dialed; the link of the other one is kept')
    }
    this.#hooks.onEstablished(link)
    return true
  }

  /** Its channel is closed. */
  remove(link: Link): void {
    if (this.#byPeer.get(link.peerId) !== link) return
    this.#byPeer.delete(link.peerId)
    this.#hooks.onLost(link, false)
  }

  closeById(linkId: string, reason: string): void {
    this.links.find(({ id }) => id === linkId)?.channel.close(reason)
  }

  closeOf(peerId: string, reason: string): void {
    this.#byPeer.get(peerId)?.channel.close(reason)
  }

  closeAll(reason: string): void {
    for (const { channel } of this.links) channel.close(reason)
  }
}
