/** Limits of interception of addresses and names at a host. */
export const interceptLimits = {
  /** Mode tproxy: maximum listening ports in total. */
  interceptListenersMax: 4096,
  /** Maximum routes to this host. */
  localRoutesMax: 1024,
  /**
   * Maximum pairs of address and protocol whose ports are redirected at this host; addresses beyond
   * this limit are not intercepted.
   */
  redirectedAddressesMax: 256,
  /**
   * Maximum redirected port ranges of this host in total; addresses that need more are not
   * intercepted.
   */
  redirectedRangesMax: 1024,
  /**
   * Maximum ports that one `nft` command adds, so that the command fits into a socket buffer of
   * the kernel.
   */
  redirectedPortsPerCommandMax: 2048,
  /** Maximum open connections and datagram sources of intercepted services. */
  interceptedClientsMax: 16_384,
  /** Maximum service names that have an address. */
  serviceNamesMax: 4096,
  /**
   * Time since the last query for a name, after which the name may lose its address to another
   * name unless a connection to the address is open.
   */
  serviceNameIdleMs: 3_600_000,
  /** TTL of DNS responses with the address of a service name, seconds. */
  serviceNameTtlSeconds: 60,
  /** Maximum names below wildcards that wait for their ports. */
  serviceNamesWaitingMax: 64,
  /** Maximum pending queries to upstream name servers; a further query is not forwarded. */
  upstreamQueriesMax: 256,
  /** Timeout for the response of an upstream name server to one query. */
  upstreamQueryMs: 3000,
  /** Maximum bytes of a query to this name server; a larger query is dropped. */
  nameQueryBytesMax: 1232,
  /** Timeout of one system command that changes routes. */
  routeCommandMs: 10_000,
} as const
