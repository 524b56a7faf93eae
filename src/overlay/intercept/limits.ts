/** Limits of interception of addresses and names at a host. */
export const interceptLimits = {
  /**
   * Mode tproxy: maximum listening ports in total and for one service, and maximum addresses of a
   * network that each get ports of their own.
   */
  interceptListenersMax: 4096,
  interceptListenersPerServiceMax: 1024,
  interceptNetworkAddressesMax: 256,
  /** Shortest prefix of a network that a service may intercept, and maximum routes to this host. */
  interceptPrefixBitsMin: 8,
  localRoutesMax: 1024,
  /** Maximum open connections and datagram sources of intercepted services. */
  interceptedClientsMax: 16_384,
  /** Maximum names with an address, and the idle time after which a name may lose its address. */
  serviceNamesMax: 4096,
  serviceNameIdleMs: 3_600_000,
  serviceNameTtlSeconds: 60,
  /** Maximum names below wildcards that wait for their ports. */
  serviceNamesWaitingMax: 64,
  /**
   * Maximum pending queries to other name servers, their timeout, and the maximum size of an
   * answer.
   */
  upstreamQueriesMax: 256,
  upstreamQueryMs: 3000,
  nameQueryBytesMax: 1232,
  /** Timeout of one system command that changes routes. */
  routeCommandMs: 10_000,
} as const
