/** Limits of the load that routers put on one controller, in addition to those of each channel. */
export const routerLimits = {
  /** Maximum open connections of the router listener; more connections are closed at once. */
  routerConnectionsMax: 8192,
  /**
   * Maximum connections from one source address; high, because many routers may share an address.
   * More are closed at once.
   */
  routerConnectionsPerSourceMax: 1024,
  /** Maximum sockets of the channel of one router. */
  routerSocketsMax: 3,
  /**
   * Rate at which one source address may open connections: burst, then per second; more are closed
   * at once.
   */
  routerConnectionsPerSourceBurst: 256,
  routerConnectionsPerSourcePerSecond: 32,
  /** The same rate for one router, identified by its certificate. */
  routerConnectsBurst: 8,
  routerConnectsPerSecond: 0.5,
  /** Maximum number of source addresses, and of certificates, whose rate is tracked. */
  routerRatesMax: 16_384,
  /**
   * Timeout from the first packet to the end of the TLS handshake, and again from there to the
   * hello; after it, the connection is closed.
   */
  routerHandshakeTimeoutMs: 5000,
  /** Protocols shown per router. */
  routerProtocolsMax: 16,
  routerCapabilitiesMax: 64,
  /**
   * Network interfaces shown per router, addresses shown per interface, and characters shown of
   * each string.
   */
  routerInterfacesMax: 16,
  routerInterfaceAddressesMax: 8,
  routerInterfaceCharactersMax: 64,
  /** Link listeners shown per router. */
  routerListenersShownMax: 8,
  /**
   * Characters stored of each string that a router reports about itself; longer strings are
   * truncated.
   */
  routerTextCharactersMax: 255,
  /** Log lines per minute about refused routers. A refused router redials repeatedly. */
  routerRefusalsLoggedMax: 60,
  /** Rate of warnings logged about one connected router: burst, then per second. */
  routerWarningsBurst: 20,
  routerWarningsPerSecond: 0.2,
  /** Routers of which a controller remembers when they connected again, or disconnected. */
  routerPresencesMax: 16_384,
  /** Interval at which the leader stores which routers connected and disconnected. */
  routerPresenceLogMs: 60_000,
  /** Time after its election until the leader stores that a router is not connected. */
  routerPresenceGraceMs: 120_000,
  /** Routers of one such log entry. */
  routerPresenceBatchMax: 500,
  /** Links that a controller stores; further links are ignored. */
  linksMax: 65_536,
  /** Links reported by one router. */
  linksPerRouterMax: 8192,
  /** Sockets shown per link. */
  linkConnectionsMax: 16,
  /** Link listeners per router, and groups per listener. */
  linkListenersMax: 32,
  /** Log entries whose data model changes are retained for routers that reconnect. */
  modelEntriesMax: 10_000,
  /** Encoded bytes of the retained data model changes. */
  modelEntriesBytesMax: 64 * 1024 * 1024,
  /**
   * Maximum routers to which the full model is sent at the same time. Each of them keeps a copy in
   * memory until the router has read it.
   */
  modelSendsMax: 4,
  /** Timeout for a router to read the full model; after it, the router's channel is closed. */
  modelSendTimeoutMs: 60_000,
  /**
   * Shortest and longest duration of a router's subscription to the data model; the router requests
   * a duration within these bounds.
   */
  modelSubscriptionSecondsMin: 10,
  modelSubscriptionSecondsMax: 360,
  /** Interval at which the controller sends routers the current index of the model. */
  modelIndexEveryMs: 30_000,
  /**
   * Timeout for inspecting one router. A slower router appears as an error in the response to the
   * operator; the timeout of that response is longer.
   */
  // @guard inspection-of-a-router--time
  routerInspectionTimeoutMs: 5000,
  /**
   * Tokens of service sessions that clients presented at routers. They are stored to identify these
   * sessions to routers when they end.
   */
  sessionsShownMax: 65_536,
  /** Presented tokens stored per router; the oldest is evicted. */
  sessionsShownPerRouterMax: 4096,
  /** Minimum interval between two full lists of API sessions to one router. */
  wholeSessionsEveryMs: 5000,
  /** Service sessions per validation request of a router. */
  sessionsValidatedMax: 1000,
  /** Concurrent writes of one router; its other writes wait. */
  routerWritesAtOnceMax: 2,
  /** Waiting writes of one router; more are refused, and the router retries later. */
  routerWritesWaitingMax: 256,
  /** Size of one write of a router in the log, bytes; larger writes are refused. */
  routerEntryBytesMax: 16 * 1024,
  /**
   * Claims with invalid API sessions that are checked again with the latest state, per router per
   * minute.
   */
  refusedClaimsOfRouterMax: 600,
  /**
   * Other refused claims that are checked again with the latest state, per minute for each pair of
   * API session and router.
   */
  refusedClaimsOfSessionMax: 120,
  /**
   * Rejected log entries per minute for each pair of API session and router; at the limit, further
   * writes are refused.
   */
  refusedEntriesOfSessionMax: 120,
  /** Posture reports per minute for each pair of API session and router. */
  postureReportsOfSessionMax: 120,
  /** Items in one posture report. */
  postureReportsMax: 256,
  /** Maximum senders tracked for each of the four limits per minute above. */
  refusedClaimsMax: 100_000,
  /** Circuits owned by this controller; the limit is divided fairly among routers and clients. */
  circuitsMax: 200_000,
  /** Maximum routers on the path of a circuit that another controller published. */
  circuitRoutersMax: 64,
  /** Circuits whose owner has failed: maximum number, and maximum time for which each is kept. */
  circuitsOrphanedMax: 65_536,
  circuitOrphanMsMax: 60_000,
  /**
   * Time for which a claimed circuit stays published to other controllers, even if it has ended.
   */
  circuitClaimPublishedMs: 5000,
  /**
   * Time after the start during which a controller does not unroute unknown circuits, because other
   * controllers may not have published them to it yet.
   */
  circuitsUnknownMs: 15_000,
  /** Time for which a dial waits for a host whose router or links have not reconnected yet. */
  hostsAwaitedMs: 2000,
  /** Dials that wait for a host, divided fairly among clients; more dials are refused at once. */
  hostsAwaitedMax: 16,
  /** Rate of circuit requests of one router: burst, then per second; more are refused. */
  circuitsOfRouterBurst: 8000,
  circuitsOfRouterPerSecond: 400,
  /** Rate of circuit requests of one client across all routers: burst, then per second. */
  circuitsOfClientBurst: 2000,
  circuitsOfClientPerSecond: 100,
  /** Maximum clients whose rate is tracked. */
  circuitClientsMax: 65_536,
  /** Pending circuit requests of one router; more are refused as busy. */
  circuitsWaitingMax: 256,
  /** Timeout per attempt for all routers on a path to reply. */
  routeTimeoutMs: 10_000,
  /** Paths tried for one circuit. */
  routeAttemptsMax: 2,
  /** Terminators for which this controller stores failed dials; the oldest is evicted. */
  failingHostsMax: 65_536,
  /**
   * Delay from the connection of a router to the validation of its terminators; meanwhile the
   * router may recreate them.
   */
  terminatorsAskedAfterMs: 5000,
  /** Terminators per validation message. */
  terminatorsAskedAtOnceMax: 500,
  /**
   * Timeout for a router to validate terminators on request; an OpenZiti router needs up to 30 s.
   */
  terminatorLookMs: 35_000,
  /** Connected identities shown per router. */
  routerClientsMax: 100_000,
  /** Metric values per router report that are published as events. */
  routerFiguresMax: 4096,
  /** Circuit byte counts per router report that are published as events. */
  routerUsagesMax: 16_384,
  /** Connections of one identity per router report that are published as events. */
  identityConnectsMax: 64,
  /**
   * Interval at which records, members and leadership are compared with the values that routers
   * last received.
   */
  routerSweepMs: 500,
} as const
