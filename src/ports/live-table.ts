export interface LiveRow {
  readonly id: string
}

/**
 * Rows that describe the live objects of one controller: links, circuits, channels of routers. The
 * log does not contain these rows; each controller has its own.
 */
export interface LiveTable<R extends LiveRow> {
  /** Id of the controller that has these rows. */
  readonly owner: string
  /** Maximum number of rows; the table refuses further ones. */
  readonly rowsMax: number
  /** Number of rows. */
  readonly size: number
  /** Returns all rows, in any order. */
  list(): readonly R[]
  get(id: string): R | undefined
  /**
   * Closes the object that the row describes.
   * @param isImmediate true: does not wait for work in progress, for objects that could wait.
   * @returns false when there is no such row.
   */
  remove(id: string, isImmediate?: boolean): boolean
}

/** The channel of a router that is connected to this controller; the id is that of the router. */
export interface LiveChannel extends LiveRow {
  readonly name: string
  /** UTC ms. */
  readonly connectedAt: number
  /** Remote address of the connection; '' when its socket has none. */
  readonly address: string
  /** Version of the router's program. */
  readonly version: string
}

/** A circuit: the path from a client to a host of a service. One controller owns it. */
export interface LiveCircuit extends LiveRow {
  readonly clientId: string
  /** The service session of the circuit; '' if a router dialed with its own identity. */
  readonly sessionId: string
  readonly serviceId: string
  readonly terminatorId: string
  /** UTC ms. */
  readonly createdAt: number
  readonly routerIds: readonly string[]
  readonly linkIds: readonly string[]
}

/** Ids of all links that a router has dialed. */
export type DialedLinkIds = Pick<ReadonlySet<string>, 'has'>

/**
 * A link between two routers, as its dialing router reports it. It is not replicated: routers
 * report it to each controller.
 */
export interface LiveLink extends LiveRow {
  /** Number of this dial among all dials of the same link; starts at 1. */
  readonly iteration: number
  readonly protocol: string
  /** Address that the source router dialed. */
  readonly dialAddress: string
  readonly sourceRouterId: string
  readonly destRouterId: string
  readonly connections: readonly LinkConnection[]
  /** True if an operator has excluded the link from routing. */
  readonly isDown: boolean
  /**
   * `Connected` if both routers of the link have a channel to this controller, otherwise `Pending`.
   */
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
 * Receives one link of a router.
 * @param to the router at the other end of the link.
 */
export type VisitLink = (to: string, cost: number, link: PathLink) => void

/** One of the sockets over which the routers of a link communicate. */
export interface LinkConnection {
  readonly type: string
  readonly sourceAddress: string
  readonly destAddress: string
}

/** Values that an operator sets on a link. */
export interface LinkChanges {
  readonly isDown?: boolean
  readonly staticCost?: number
}

/**
 * The links that this controller knows. When a caller removes a link, the controller makes both
 * routers close the link; they may dial it again.
 */
export interface LiveLinks extends LiveTable<LiveLink> {
  /** Visits each usable link of the router, in any order. */
  visitUsable(routerId: string, visit: VisitLink): void
  /**
   * Whether the link is gone. False while the router that dialed it has not reported its links, or
   * the other router is disconnected.
   */
  isLost(link: PathLink): boolean
  /**
   * Changes a link.
   * @returns false when there is no such link.
   */
  change(id: string, changes: LinkChanges): boolean
}
