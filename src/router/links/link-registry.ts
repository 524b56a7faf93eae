import type { ChannelMessage } from '../../channel/frame.ts'
import type { Link } from './link.ts'

/** The code that forwards the frames of circuits over links. */
export interface LinkTrafficHandler {
  addLink(link: Link): void
  removeLink(link: Link): void
  onLinkMessage(link: Link, message: ChannelMessage): void
}

interface LinkHooks {
  readonly onEstablished: (link: Link) => void
  readonly onLost: (link: Link, reason: string, isDuplicate: boolean) => void
}

/**
 * The links of this router, one for each peer. If two routers dial each other at the same time,
 * both keep the link with the smaller ID, so they agree without exchanging messages.
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

  /** The link that the peer dialed. */
  acceptedFrom(peerId: string): Link | undefined {
    const link = this.#byPeer.get(peerId)
    return link?.isDialed === false ? link : undefined
  }

  /** @returns why the router refuses a new link; null if it accepts the link. */
  refusalOf(link: Pick<Link, 'id' | 'peerId'>): string | null {
    // Refuses an ID that a link to another peer already has: the dialing router chooses the link
    // ID, and controllers route circuits by this ID.
    const isTaken = this.links.some(({ id, peerId }) => id === link.id && peerId !== link.peerId)
    // @guard link-of-another-router--id
    if (isTaken) return 'another router has a link with this id'
    const other = this.#byPeer.get(link.peerId)
    const isNeeded = other === undefined || other.channel.isClosed || other.id >= link.id
    return isNeeded ? null : 'a link with a smaller id exists already'
  }

  /** @returns why the caller must close the new link; null if it was added. */
  add(link: Link): string | null {
    const refusal = this.refusalOf(link)
    if (refusal !== null) return refusal
    const other = this.#byPeer.get(link.peerId)
    this.#byPeer.set(link.peerId, link)
    if (other !== undefined) {
      const reason = 'both routers dialed; the link of the other one is kept'
      this.#hooks.onLost(other, reason, true)
      other.close(reason)
    }
    this.#hooks.onEstablished(link)
    return null
  }

  /** Removes a link whose channel has closed. */
  remove(link: Link, reason: string): void {
    if (this.#byPeer.get(link.peerId) !== link) return
    this.#byPeer.delete(link.peerId)
    link.close(reason)
    this.#hooks.onLost(link, reason, false)
  }

  /** @param iteration closes the link only if its iteration is not newer; 0: any iteration. */
  closeById(linkId: string, iteration: number, reason: string): void {
    const link = this.links.find(({ id }) => id === linkId)
    if (link === undefined || (iteration > 0 && iteration < link.iteration)) return
    link.close(reason)
  }

  closeOf(peerId: string, reason: string): void {
    this.#byPeer.get(peerId)?.close(reason)
  }

  closeAll(reason: string): void {
    for (const link of this.links) link.close(reason)
  }
}
