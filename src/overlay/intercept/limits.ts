/** Interception of addresses and names at a host. */
export const interceptLimits = {
  /**
   * Mode tproxy: ports that are listened on, in all and for one service; addresses of a network
   * that each get a port of their own.
   */
  interceptListenersMax: 4096,
  interceptListenersPerServiceMax: 1024,
  interceptNetworkAddressesMax: 256,
  /** Shortest prefix of a network that a service may take, and routes that lead to this host. */
  interceptPrefixBitsMin: 8,
  localRoutesMax: 1024,
  /** Open connections of intercepted services, and sources of datagrams. */
  interceptedClientsMax: 16_384,
  /** Names with an address; one that nobody has asked for in this time gives its address back. */
  serviceNamesMax: 4096,
  serviceNameIdleMs: 3_600_000,
  serviceNameTtlSeconds: 60,
  /** Names below wildcards that wait for their ports. */
  serviceNamesWaitingMax: 64,
  /** Queries to other name servers that wait for an answer, how long each does, and its size. */
  upstreamQueriesMax: 256,
  upstreamQueryMs: 3000,
  nameQueryBytesMax: 1232,
  /** How long one command of the system may take that changes its routes. */
  routeCommandMs: 10_000,
} as const
