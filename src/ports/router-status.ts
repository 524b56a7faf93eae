/** Status of a router that is connected to a controller of the cluster. */
export interface RouterStatus {
  /** Host name of the router; '' until the router has reported it. */
  readonly hostname: string
  /** Protocol → `protocol://host:port`, at which clients reach the router. */
  readonly protocols: Readonly<Record<string, string>>
  readonly version: RouterVersion
  /** The bits that are set in the capability mask of the router's hello. */
  readonly capabilities: readonly number[]
  /** Addresses at which the router accepts links from other routers. */
  readonly linkListeners: readonly RouterLinkListener[]
  readonly interfaces: readonly RouterInterface[]
}

export interface RouterLinkListener {
  readonly address: string
  readonly protocol: string
}

/** A network interface of the router's host. */
export interface RouterInterface {
  readonly name: string
  readonly hardwareAddress: string
  readonly mtu: number
  readonly index: number
  /** The sum of the bits of {@link interfaceFlag} that apply. */
  readonly flags: number
  /** Addresses of the interface, each with its prefix length. */
  readonly addresses: readonly string[]
}

interface RouterVersion {
  readonly version: string
  readonly revision: string
  readonly buildDate: string
  readonly os: string
  readonly arch: string
}

/**
 * Times at which a router connected or disconnected, as this controller has observed since its
 * start. UTC ms.
 */
export interface RouterPresence {
  /**
   * Start of the router's oldest open channel to a controller; null while the router has no
   * channel.
   */
  readonly connectedMs: number | null
  /** Time at which the router last connected after it had no channel to any controller. */
  readonly returnedMs: number | null
  /** Time at which the router lost its last channel; null while it has a channel. */
  readonly lostMs: number | null
}

/** Status of routers, combined from the reports of all controllers. */
export interface RouterStatuses {
  /** Status of a router; null if it is not connected to any controller. */
  of(routerId: string): RouterStatus | null
  presenceOf(routerId: string): RouterPresence
  /**
   * Whether the identity is connected to an edge router that has a channel to this controller; null
   * if this controller has no channel to an edge router.
   */
  hasConnection(identityId: string): boolean | null
  /** Cost that this controller adds to a terminator for its open circuits and failed dials. */
  dialCost(terminatorId: string): number
}

export const noRouterPresence: RouterPresence = {
  connectedMs: null,
  returnedMs: null,
  lostMs: null,
}

export const noRouterStatuses: RouterStatuses = {
  of: () => null,
  presenceOf: () => noRouterPresence,
  hasConnection: () => null,
  dialCost: () => 0,
}
