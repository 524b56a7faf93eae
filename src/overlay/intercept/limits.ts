/** Limits of interception of addresses and names at a host. */
export const interceptLimits = {
  /** Mode tproxy: maximum listening ports in total. */
  interceptListenersMax: 4096,
  /** Maximum routes to this host. */
  localRoutesMax: 1024,
  /**
   * Maximum addresses and protocols whose ports are redirected; maximum redirected port ranges in
   * total; maximum ports that one command adds, so that the command fits into a socket buffer of
   * the kernel.
   */
  redirectedAddressesMax: 256,
  redirectedRangesMax: 1024,
  redirectedPortsPerCommandMax: 2048,
  /** Maximum open connections and datagram sources of intercepted services. */
  interceptedClientsMax: 16_384,
  /** Maximum names with an address, and the idle time after which a name may lose its address. */
  serviceNamesMax: 4096,
  serviceNameIdleMs: 3_600_000,
  serviceNameTtlSeconds: 60,
  /** Maximum names below wildcards that wait for their ports. */
  serviceNamesWaitingMax: 64,
  /**
   * Maximum pending queries to other name servers, their timeout, and the maximum size of a
   * response.
   */
  upstreamQueriesMax: 256,
  upstreamQueryMs: 3000,
  nameQueryBytesMax: 1232,
  /** Timeout of one system command that changes routes. */
  routeCommandMs: 10_000,
} as const
