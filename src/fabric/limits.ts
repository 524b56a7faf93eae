/** Limits of the load that routers put on one controller, in addition to those of each channel. */
export const routerLimits = {
  /** Open connections of the router listener; more are closed at once. */
  routerConnectionsMax: 8192,
  /**
   * Connections from one source, because many routers may share an address; more are closed at
   * once.
   */
  routerConnectionsPerSourceMax: 1024,
  /** Maximum sockets of the channel of one router. */
  routerSocketsMax: 3,
  /** Connections that one source opens: burst, then per second; more are closed at once. */
  routerConnectionsPerSourceBurst: 256,
  routerConnectionsPerSourcePerSecond: 32,
  /** As above, for one router, identified by its certificate. */
  routerConnectsBurst: 8,
  routerConnectsPerSecond: 0.5,
  /** Maximum sources, and certificates, whose rate is tracked. */
  routerRatesMax: 16_384,
  /**
   * Time from the first packet to the end of the TLS handshake, and again to the hello; then the
   * connection is closed.
   */
  routerHandshakeTimeoutMs: 5000,
  /** Protocols shown per router. */
  routerProtocolsMax: 16,
  routerCapabilitiesMax: 64,
  /** Network interfaces shown per router, addresses of each, and characters of each text. */
  routerInterfacesMax: 16,
  routerInterfaceAddressesMax: 8,
  routerInterfaceCharactersMax: 64,
  /** Link listeners shown per router. */
  routerListenersShownMax: 8,
  /** Characters of each text that a router reports about itself; longer texts are truncated. */
  routerTextCharactersMax: 255,
  /** Log lines about refused routers per minute, because a refused router redials repeatedly. */
  routerRefusalsLoggedMax: 60,
  /** Log warnings about one connected router: burst, then per second. */
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
  /** Links known to a controller; further links are not shown. */
  linksMax: 65_536,
  /** Links reported by one router. */
  linksPerRouterMax: 8192,
  /** Sockets shown per link. */
  linkConnectionsMax: 16,
  /** Link listeners of one router, and groups of each. */
  linkListenersMax: 32,
  /** Log entries whose data model changes are kept for routers that reconnect. */
  modelEntriesMax: 10_000,
  /** Encoded bytes of those entries. */
  modelEntriesBytesMax: 64 * 1024 * 1024,
  /**
   * Maximum routers that receive the whole model at once; for each of them a copy stays in memory
   * until the router has read it.
   */
  modelSendsMax: 4,
  /** Time for a router to read the whole model; then its channel is closed. */
  modelSendTimeoutMs: 60_000,
  /**
   * Duration for which a router receives changes after a subscription; the router requests it
   * within these bounds.
   */
  modelSubscriptionSecondsMin: 10,
  modelSubscriptionSecondsMax: 360,
  /** Interval at which routers are sent the index of the model. */
  modelIndexEveryMs: 30_000,
  /**
   * Timeout for inspecting one router. A slower router appears as an error in the answer, whose own
   * timeout is longer.
   */
  // @guard inspection-of-a-router--time
  routerInspectionTimeoutMs: 5000,
  /** Service session tokens presented at routers, kept to name these sessions when they end. */
  sessionsShownMax: 65_536,
  /** Such tokens per router; the oldest is dropped. */
  sessionsShownPerRouterMax: 4096,
  /** Minimum interval between two full lists of API sessions that a router requests. */
  wholeSessionsEveryMs: 5000,
  /** Service sessions in one validation request of a router. */
  sessionsValidatedMax: 1000,
  /** Concurrently proposed writes of one router; its other writes wait. */
  routerWritesAtOnceMax: 2,
  /** Waiting writes of one router; further ones are refused, and the router retries later. */
  routerWritesWaitingMax: 256,
  /** Bytes of one write of a router in the log; larger ones are refused. */
  routerEntryBytesMax: 16 * 1024,
  /**
   * Claims with invalid API sessions that are checked again with the latest state, per router and
   * minute.
   */
  refusedClaimsOfRouterMax: 600,
  /**
   * Other refused claims that are checked again with the latest state, per API session at one
   * router and minute.
   */
  refusedClaimsOfSessionMax: 120,
  /** Rejected log entries per API session at one router and minute. */
  refusedEntriesOfSessionMax: 120,
  /** Posture reports per API session at one router and minute. */
  postureReportsOfSessionMax: 120,
  /** Items in one posture report. */
  postureReportsMax: 256,
  /** Maximum senders that are tracked for each of these four limits. */
  refusedClaimsMax: 100_000,
  /** Circuits owned by this controller; routers and clients share the limit. */
  circuitsMax: 200_000,
  /** Routers on the path of a circuit published by another controller. */
  circuitRoutersMax: 64,
  /** Circuits without an owner: maximum number, and how long each is kept. */
  circuitsOrphanedMax: 65_536,
  circuitOrphanMsMax: 60_000,
  /** Time for which other controllers are informed of a claimed circuit, even if it has ended. */
  circuitClaimPublishedMs: 5000,
  /**
   * Time after its start during which a controller does not unroute circuits it does not know,
   * because other controllers may not have published them to it yet.
   */
  circuitsUnknownMs: 15_000,
  /** Time for which a dial waits for a host whose router or links have not reconnected yet. */
  hostsAwaitedMs: 2000,
  /** Dials that wait this way, shared by clients; further ones are refused at once. */
  hostsAwaitedMax: 16,
  /** Circuit requests of one router: burst, then per second; more are refused. */
  circuitsOfRouterBurst: 8000,
  circuitsOfRouterPerSecond: 400,
  /** Circuit requests of one client through any router: burst, then per second. */
  circuitsOfClientBurst: 2000,
  circuitsOfClientPerSecond: 100,
  /** Clients with a tracked rate. */
  circuitClientsMax: 65_536,
  /** Circuits of one router that are being created; more are refused as busy. */
  circuitsWaitingMax: 256,
  /** Timeout for all routers of a path to answer, per attempt. */
  routeTimeoutMs: 10_000,
  /** Paths tried for one circuit. */
  routeAttemptsMax: 2,
  /** Terminators with failed dials that this controller remembers; the oldest is dropped. */
  failingHostsMax: 65_536,
  /**
   * Delay after a router connects before its terminators are validated; it may recreate them first.
   */
  terminatorsAskedAfterMs: 5000,
  /** Terminators in one validation message. */
  terminatorsAskedAtOnceMax: 500,
  /** Timeout for a router to validate terminators; an OpenZiti router takes up to 30 s. */
  terminatorLookMs: 35_000,
  /** Connected identities shown per router. */
  routerClientsMax: 100_000,
  /** Values of one router report that are published as events. */
  routerFiguresMax: 4096,
  /** Circuit byte counts of one router report that are published as events. */
  routerUsagesMax: 16_384,
  /** Connections of one identity in one router report that are published as events. */
  identityConnectsMax: 64,
  /**
   * Interval for comparing records, members and leadership with the last values that routers
   * received.
   */
  routerSweepMs: 500,
} as const
