/** Limits for intercepting addresses and names on a host. */
export const interceptLimits = {
  /**
   * Mode `tproxy`: maximum listening ports of all services; parts of services that need more are
   * not intercepted.
   */
  interceptListenersMax: 4096,
  /** Maximum networks that a tunnel routes to its own host. */
  localRoutesMax: 1024,
  /**
   * Maximum pairs of address and protocol whose ports are redirected on this host; further
   * addresses are not intercepted.
   */
  redirectedAddressesMax: 256,
  /**
   * Maximum port ranges that are redirected on this host in total; addresses that need more are not
   * intercepted.
   */
  redirectedRangesMax: 1024,
  /**
   * Maximum ports that one `nft` command adds, so that the command fits into a socket buffer of
   * the kernel.
   */
  redirectedPortsPerCommandMax: 2048,
  /** Maximum open TCP connections and UDP peers of intercepted services. */
  interceptedClientsMax: 16_384,
  /** Maximum names of services to which the tunnel has assigned an address. */
  serviceNamesMax: 4096,
  /**
   * Time after the last query for a name. After this time, the address of the name may be assigned
   * to another name, unless a connection to it is open.
   */
  serviceNameIdleMs: 3_600_000,
  /** TTL of DNS responses with the address of a service name, seconds. */
  serviceNameTtlSeconds: 60,
  /** Maximum names below wildcards that wait for an address and ports. */
  serviceNamesWaitingMax: 64,
  /** Maximum pending queries to the configured name servers; a further query is not forwarded. */
  upstreamQueriesMax: 256,
  /** Maximum time for the response of one configured name server to one query. */
  upstreamQueryMs: 3000,
  /** Maximum bytes of a query to the tunnel's name server; a larger query is dropped. */
  nameQueryBytesMax: 1232,
  /** Maximum time of one system command that changes routes or rules. */
  routeCommandMs: 10_000,
} as const
