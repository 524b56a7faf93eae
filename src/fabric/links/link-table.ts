import type {
  DialedLinkIds,
  LinkChanges,
  LinkConnection,
  LiveLink,
  LiveLinks,
  VisitLink,
  PathLink,
} from '../../ports/live-table.ts'
import { addToSet, removeFromSet } from '../../lib/keyed-sets.ts'
import { copyPrefix } from '../../lib/text/copy-prefix.ts'
import { routerLimits } from '../limits.ts'
import { LiveRowTable } from '../live-row-table.ts'

const { linksMax, linksPerRouterMax, linkConnectionsMax, routerTextCharactersMax } = routerLimits

const NS_PER_MS = 1_000_000
/** Latency of a link before its first measurement; high, so that such a link is chosen last. */
const LATENCY_NS_ASSUMED = 65_000 * NS_PER_MS
const STATIC_COST_ASSUMED = 1

/** A router's report about a link that it dialed. */
export interface ReportedLink {
  readonly id: string
  readonly destRouterId: string
  readonly protocol: string
  readonly dialAddress: string
  readonly iteration: number
  readonly connections: readonly LinkConnection[]
}

interface LinkTableDeps {
  /** ID of this controller. */
  readonly owner: string
  /** Whether the router has a channel to this controller. */
  readonly isConnected: (routerId: string) => boolean
  /**
   * Whether the router must not carry circuits, because it is disabled or must enroll again. False
   * for an unknown router, whose record may not have arrived yet.
   */
  readonly isBarred: (routerId: string) => boolean
  /** Makes a router close its side of a link that is gone. */
  readonly sendGone: (routerId: string, link: LiveLink) => void
  /** Called when a link is new or was reported again, or its sockets were reported. */
  readonly onSeen?: (link: LiveLink, how: 'new' | 'known' | 'connectionsChanged') => void
  /**
   * Called when a link was lost or removed. Not called when only the router that reported it has
   * disconnected from this controller.
   */
  readonly onGone: (link: LiveLink) => void
}

interface Kept {
  link: ReportedLink
  /** The link as an element of circuit paths. */
  path: PathLink
  readonly sourceRouterId: string
  isDown: boolean
  staticCost: number
  sourceLatencyNs: number
  destLatencyNs: number
}

/**
 * Links between routers, according to the routers that dialed them. A router reports its links to
 * every controller to which it is connected. When the router's channel closes, its links leave the
 * table; over its next channel, the router reports all of them again.
 */
export class LinkTable implements LiveLinks {
  readonly #deps: LinkTableDeps
  readonly #links: LiveRowTable<Kept, LiveLink>
  /**
   * Link IDs by the router that dialed the link. `#byDest` has them by the router that was dialed.
   */
  readonly #bySource = new Map<string, Set<string>>()
  readonly #byDest = new Map<string, Set<string>>()
  /** Routers that have reported all links that they dialed. */
  readonly #reported = new Set<string>()

  constructor(deps: LinkTableDeps) {
    this.#deps = deps
    this.#links = new LiveRowTable({
      owner: deps.owner,
      rowsMax: linksMax,
      viewOf: (kept) => this.#view(kept),
      onRemoved: (kept) => this.#onRemoved(kept),
    })
  }

  get owner(): string {
    return this.#links.owner
  }

  get size(): number {
    return this.#links.size
  }

  get rowsMax(): number {
    return this.#links.rowsMax
  }

  /**
   * Removes all links that the router dialed, except those with these IDs; one link in each step.
   */
  *keep(sourceRouterId: string, ids: DialedLinkIds): Generator<void, void> {
    for (const id of Array.from(this.#bySource.get(sourceRouterId) ?? [])) {
      if (!ids.has(id)) this.#lose(id)
      yield
    }
  }

  /** @returns false if the link is ignored because a limit is reached. */
  report(sourceRouterId: string, reported: ReportedLink): boolean {
    const link = bounded(reported)
    if (!this.#add(sourceRouterId, link)) return false
    // A barred router must have no links. The dialing router cannot know this, so it is informed
    // here.
    if (this.#deps.isBarred(link.destRouterId)) this.#refuse(sourceRouterId, link.id)
    return true
  }

  #refuse(sourceRouterId: string, id: string): void {
    const view = this.get(id)
    if (view?.sourceRouterId !== sourceRouterId) return
    this.#drop(id)
    this.#deps.sendGone(sourceRouterId, view)
    this.#deps.onGone(view)
  }

  /** Changes the sockets of a link; only the router that dialed the link may do this. */
  update(
    routerId: string,
    id: string,
    iteration: number,
    connections: readonly LinkConnection[],
  ): void {
    const kept = this.#links.kept(id)
    if (kept?.sourceRouterId !== routerId || kept.link.iteration !== iteration) return
    kept.link = bounded({ ...kept.link, connections })
    this.#deps.onSeen?.(this.#view(kept), 'connectionsChanged')
  }

  /**
   * Called when one of a link's two routers has reported it as lost. Informs the other router if
   * both are connected.
   */
  lost(routerId: string, id: string, iteration: number): void {
    const kept = this.#links.kept(id)
    if (kept === undefined || kept.link.iteration > iteration) return
    const { sourceRouterId, link } = kept
    if (routerId !== sourceRouterId && routerId !== link.destRouterId) return
    const view = this.#view(kept)
    this.#drop(id)
    const other = routerId === sourceRouterId ? link.destRouterId : sourceRouterId
    if (view.state === 'Connected') this.#deps.sendGone(other, view)
    this.#deps.onGone(view)
  }

  /** Stores a latency that one of the link's two routers measured. */
  measured(routerId: string, id: string, latencyNs: number): void {
    const kept = this.#links.kept(id)
    if (kept === undefined || !Number.isFinite(latencyNs) || latencyNs < 0) return
    // @guard circuits-of-others--measured
    if (routerId === kept.sourceRouterId) kept.sourceLatencyNs = Math.round(latencyNs)
    else if (routerId === kept.link.destRouterId) kept.destLatencyNs = Math.round(latencyNs)
  }

  /** Called when the router has reported all its links. */
  onAllReported(sourceRouterId: string): void {
    if (this.#deps.isConnected(sourceRouterId)) this.#reported.add(sourceRouterId)
  }

  /**
   * Whether the link is gone. False while the router that dialed it has not reported its links, or
   * the other router is disconnected.
   */
  isLost({ id, sourceRouterId, destRouterId }: PathLink): boolean {
    const isHeardOf = this.#reported.has(sourceRouterId) && this.#deps.isConnected(destRouterId)
    return isHeardOf && this.#links.kept(id)?.sourceRouterId !== sourceRouterId
  }

  /** Called when the channel of the router has closed. */
  forget(routerId: string): void {
    this.#reported.delete(routerId)
    for (const id of Array.from(this.#bySource.get(routerId) ?? [])) this.#drop(id)
  }

  /**
   * Called when the router may no longer carry circuits. Makes the other routers close their links
   * with it.
   */
  banish(routerId: string): void {
    const ids = [...(this.#bySource.get(routerId) ?? []), ...(this.#byDest.get(routerId) ?? [])]
    for (const id of ids) {
      const link = this.get(id)
      if (link === undefined) continue
      const { sourceRouterId, destRouterId } = link
      this.#drop(id)
      this.#deps.sendGone(sourceRouterId === routerId ? destRouterId : sourceRouterId, link)
      this.#deps.onGone(link)
    }
  }

  list(): readonly LiveLink[] {
    return this.#links.list()
  }

  visitUsable(routerId: string, visit: VisitLink): void {
    const { isConnected } = this.#deps
    if (!isConnected(routerId)) return
    for (const ids of [this.#bySource.get(routerId), this.#byDest.get(routerId)]) {
      for (const id of ids ?? []) {
        const kept = this.#links.kept(id)
        if (kept === undefined || kept.isDown) continue
        const { sourceRouterId, destRouterId } = kept.path
        const to = sourceRouterId === routerId ? destRouterId : sourceRouterId
        if (isConnected(to)) visit(to, costOf(kept), kept.path)
      }
    }
  }

  get(id: string): LiveLink | undefined {
    return this.#links.get(id)
  }

  change(id: string, { isDown, staticCost }: LinkChanges): boolean {
    const kept = this.#links.kept(id)
    if (kept === undefined) return false
    kept.isDown = isDown ?? kept.isDown
    kept.staticCost = staticCost ?? kept.staticCost
    return true
  }

  remove(id: string): boolean {
    return this.#links.remove(id)
  }

  #onRemoved(kept: Kept): void {
    this.#forgetEnds(kept)
    const view = this.#view(kept)
    for (const routerId of [view.sourceRouterId, view.destRouterId]) {
      this.#deps.sendGone(routerId, view)
    }
    this.#deps.onGone(view)
  }

  #add(sourceRouterId: string, link: ReportedLink): boolean {
    const kept = this.#links.kept(link.id)
    if (kept !== undefined) {
      // A link ID belongs to the router that dialed the link; another router cannot report the same
      // ID.
      if (kept.sourceRouterId === sourceRouterId && link.iteration >= kept.link.iteration) {
        removeFromSet(this.#byDest, kept.link.destRouterId, link.id)
        addToSet(this.#byDest, link.destRouterId, link.id)
        kept.link = link
        kept.path = pathLink(sourceRouterId, link)
        this.#deps.onSeen?.(this.#view(kept), 'known')
      }
      return true
    }
    const own = this.#bySource.get(sourceRouterId)
    if (this.#links.isFull || (own?.size ?? 0) >= linksPerRouterMax) return false
    addToSet(this.#bySource, sourceRouterId, link.id)
    addToSet(this.#byDest, link.destRouterId, link.id)
    const added = {
      link,
      path: pathLink(sourceRouterId, link),
      sourceRouterId,
      isDown: false,
      staticCost: STATIC_COST_ASSUMED,
      sourceLatencyNs: LATENCY_NS_ASSUMED,
      destLatencyNs: LATENCY_NS_ASSUMED,
    }
    this.#links.set(link.id, added)
    this.#deps.onSeen?.(this.#view(added), 'new')
    return true
  }

  #lose(id: string): void {
    const view = this.get(id)
    this.#drop(id)
    if (view !== undefined) this.#deps.onGone(view)
  }

  #drop(id: string): void {
    const kept = this.#links.drop(id)
    if (kept !== undefined) this.#forgetEnds(kept)
  }

  #forgetEnds({ link, sourceRouterId }: Kept): void {
    removeFromSet(this.#bySource, sourceRouterId, link.id)
    removeFromSet(this.#byDest, link.destRouterId, link.id)
  }

  #view(kept: Kept): LiveLink {
    const { link, sourceRouterId, isDown, staticCost, sourceLatencyNs, destLatencyNs } = kept
    const { isConnected } = this.#deps
    const isUp = isConnected(sourceRouterId) && isConnected(link.destRouterId)
    return {
      ...link,
      sourceRouterId,
      isDown,
      staticCost,
      sourceLatencyNs,
      destLatencyNs,
      state: isUp ? 'Connected' : 'Pending',
      cost: costOf(kept),
    }
  }
}

const pathLink = (
  sourceRouterId: string,
  { id, iteration, destRouterId }: ReportedLink,
): PathLink => ({
  id,
  iteration,
  sourceRouterId,
  destRouterId,
})

function costOf({ staticCost, sourceLatencyNs, destLatencyNs }: Kept): number {
  const latencyMs = (ns: number): number => Math.floor(ns / NS_PER_MS)
  return staticCost + latencyMs(sourceLatencyNs) + latencyMs(destLatencyNs)
}

/** Truncates texts, because routers determine their length. */
function bounded(link: ReportedLink): ReportedLink {
  const text = (value: string): string => copyPrefix(value, routerTextCharactersMax)
  return {
    id: text(link.id),
    destRouterId: text(link.destRouterId),
    protocol: text(link.protocol),
    dialAddress: text(link.dialAddress),
    iteration: link.iteration,
    connections: link.connections
      .slice(0, linkConnectionsMax)
      .map(({ type, sourceAddress, destAddress }) => ({
        type: text(type),
        sourceAddress: text(sourceAddress),
        destAddress: text(destAddress),
      })),
  }
}
