import type { LiveRow, LiveTable } from './live-table.ts'

/** Ids of all links that a router has dialed. */
export type LinkIds = Pick<ReadonlySet<string>, 'has'>

/**
 * A link between two routers, as its dialing router reports it. It is not replicated: routers
 * report it to each controller.
 */
export interface LiveLink extends LiveRow {
  /** Number of the dial of the same link; from 1. */
  readonly iteration: number
  readonly protocol: string
  /** Address that the source router dialed. */
  readonly dialAddress: string
  readonly sourceRouterId: string
  readonly destRouterId: string
  readonly connections: readonly LinkConnection[]
  /** An operator has taken it out of use. */
  readonly isDown: boolean
  /** Connected: both its routers have a channel to this controller. */
  readonly state: 'Pending' | 'Connected'
  readonly staticCost: number
  /** Latencies as each router measured them last; nanoseconds. */
  readonly sourceLatencyNs: number
  readonly destLatencyNs: number
  /** Static cost and both latencies in whole milliseconds. */
  readonly cost: number
}

/** A link as a circuit's path stores it. */
export type PathLink = Pick<LiveLink, 'id' | 'iteration' | 'sourceRouterId' | 'destRouterId'>

/**
 * Called for a link of a router.
 * @param to the other router.
 */
export type LinkVisit = (to: string, cost: number, link: PathLink) => void

export interface LinkConnection {
  readonly type: string
  readonly sourceAddress: string
  readonly destAddress: string
}

export interface LinkChanges {
  readonly isDown?: boolean
  readonly staticCost?: number
}

/**
 * The links that this controller knows. When one is removed, the controller tells both routers to
 * close it; they may dial it again.
 */
export interface LiveLinks extends LiveTable<LiveLink> {
  /** Visits each usable link of the router, in no order. */
  visitUsable(routerId: string, visit: LinkVisit): void
  /** False until the routers have reported their links. */
  isLost(link: PathLink): boolean
  /** @returns false when there is no such link. */
  change(id: string, changes: LinkChanges): boolean
}
