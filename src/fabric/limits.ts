/**
 * Limits of the load that routers put on one controller, in addition to the limits of each channel.
 */
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
  /** Connections that one source address may open at once (burst); more are closed at once. */
  routerConnectionsPerSourceBurst: 256,
  /**
   * Connections that one source address may open per second after the burst; more are closed at
   * once.
   */
  routerConnectionsPerSourcePerSecond: 32,
  /** Connections that one router, identified by its certificate, may open at once (burst). */
  routerConnectsBurst: 8,
  /** Connections that one router may open per second after the burst `routerConnectsBurst`. */
  routerConnectsPerSecond: 0.5,
  /** Maximum number of source addresses, and of certificates, whose rate is tracked. */
  routerRatesMax: 16_384,
  /**
   * Timeout from the first packet to the end of the TLS handshake, and again from there to the
   * hello; when it expires, the connection is closed.
   */
  routerHandshakeTimeoutMs: 5000,
  /** Maximum protocols that are stored and shown for one router; further ones are dropped. */
  routerProtocolsMax: 16,
  /** Maximum capabilities that are stored and shown for one router; further ones are dropped. */
  routerCapabilitiesMax: 64,
  /**
   * Maximum network interfaces that are stored and shown for one router; further ones are dropped.
   */
  routerInterfacesMax: 16,
  /**
   * Maximum addresses that are stored and shown for one network interface; further ones are
   * dropped.
   */
  routerInterfaceAddressesMax: 8,
  /**
   * Maximum characters of the name, hardware address or one address of a network interface;
   * longer texts are truncated.
   */
  routerInterfaceCharactersMax: 64,
  /** Maximum link listeners shown per router. */
  routerListenersShownMax: 8,
  /**
   * Maximum characters stored of each string that a router reports about itself; longer strings are
   * truncated.
   */
  routerTextCharactersMax: 255,
  /** Maximum alerts of one message of a router that become events; further ones are dropped. */
  routerAlertsMax: 64,
  /** Maximum details, and related entities, of one alert of a router; further ones are dropped. */
  routerAlertItemsMax: 8,
  /** Maximum log lines per minute about refused routers. A refused router redials repeatedly. */
  routerRefusalsLoggedMax: 60,
  /** Warnings that may be logged about one connected router at once (burst). */
  routerWarningsBurst: 20,
  /**
   * Warnings that are logged about one connected router per second after the burst
   * `routerWarningsBurst`.
   */
  routerWarningsPerSecond: 0.2,
  /**
   * Maximum routers for which a controller stores when they disconnected, or when they reconnected.
   */
  routerPresencesMax: 16_384,
  /** Interval at which the leader stores which routers connected and disconnected. */
  routerPresenceLogMs: 60_000,
  /**
   * Time from the election of a leader until the leader stores that a router is not connected.
   */
  routerPresenceGraceMs: 120_000,
  /** Maximum routers in one log entry that stores which routers connected and disconnected. */
  routerPresenceBatchMax: 500,
  /** Maximum links that a controller stores; further links are ignored. */
  linksMax: 65_536,
  /** Maximum links that one router reports; further links are ignored. */
  linksPerRouterMax: 8192,
  /** Sockets shown per link. */
  linkConnectionsMax: 16,
  /** Maximum link listeners per router, and maximum groups per listener. */
  linkListenersMax: 32,
  /** Maximum log entries whose data model changes are retained for routers that reconnect. */
  modelEntriesMax: 10_000,
  /** Maximum encoded bytes of the retained data model changes. */
  modelEntriesBytesMax: 64 * 1024 * 1024,
  /**
   * Maximum routers to which the full model is sent at the same time. Each of them keeps a copy in
   * memory until the router has read it.
   */
  modelSendsMax: 4,
  /**
   * Timeout for a router to read the full model; when it expires, the router's channel is closed.
   */
  modelSendTimeoutMs: 60_000,
  /**
   * Shortest duration of a router's subscription to the data model; a shorter requested duration is
   * raised to this value.
   */
  modelSubscriptionSecondsMin: 10,
  /**
   * Longest duration of a router's subscription to the data model; a longer requested duration
   * is reduced to this value.
   */
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
   * Maximum service session tokens that are stored after clients presented them at routers. When
   * such a session ends, its token identifies the session to the router.
   */
  sessionsShownMax: 65_536,
  /** Maximum presented tokens stored per router; the oldest is evicted. */
  sessionsShownPerRouterMax: 4096,
  /** Minimum interval between two full lists of API sessions to one router. */
  wholeSessionsEveryMs: 5000,
  /** Maximum service sessions in one validation request of a router. */
  sessionsValidatedMax: 1000,
  /** Maximum concurrent writes of one router; further writes wait. */
  routerWritesAtOnceMax: 2,
  /** Maximum waiting writes of one router; more are refused, and the router retries later. */
  routerWritesWaitingMax: 256,
  /** Maximum bytes that one write by a router takes in the log; larger writes are refused. */
  routerEntryBytesMax: 16 * 1024,
  /**
   * Maximum claims per router and minute that have an invalid API session and are checked again
   * with the latest state.
   */
  refusedClaimsOfRouterMax: 600,
  /**
   * Maximum other refused claims that are checked again with the latest state, per minute and pair
   * of API session and router.
   */
  refusedClaimsOfSessionMax: 120,
  /**
   * Maximum rejected log entries per minute and pair of API session and router; at the limit,
   * further writes are refused.
   */
  refusedEntriesOfSessionMax: 120,
  /** Maximum posture reports per minute and pair of API session and router. */
  postureReportsOfSessionMax: 120,
  /** Maximum items in one posture report. */
  postureReportsMax: 256,
  /** Maximum senders tracked for each of the four limits per minute above. */
  refusedClaimsMax: 100_000,
  /** Circuits owned by this controller; the limit is divided fairly among routers and clients. */
  circuitsMax: 200_000,
  /** Maximum routers on the path of a circuit that another controller published. */
  circuitRoutersMax: 64,
  /**
   * Maximum circuits that a controller retains after their owner has failed; further ones are
   * dropped.
   */
  circuitsOrphanedMax: 65_536,
  /**
   * Maximum time for which a controller retains a circuit whose owner has failed; after that,
   * the circuit is dropped.
   */
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
  /**
   * Maximum dials that wait for a host, divided fairly among clients; more dials are refused at
   * once.
   */
  hostsAwaitedMax: 16,
  /** Circuits that one router may request at once (burst); more are refused. */
  circuitsOfRouterBurst: 8000,
  /** Circuits that one router may request per second after the burst; more are refused. */
  circuitsOfRouterPerSecond: 400,
  /** Circuits that one client may request at once (burst), across all routers; more are refused. */
  circuitsOfClientBurst: 2000,
  /**
   * Circuits that one client may request per second after the burst, across all routers; more
   * are refused.
   */
  circuitsOfClientPerSecond: 100,
  /** Maximum clients whose rate is tracked. */
  circuitClientsMax: 65_536,
  /** Maximum pending circuit requests of one router; more are refused as busy. */
  circuitsWaitingMax: 256,
  /** Timeout per attempt for all routers on a path to reply. */
  routeTimeoutMs: 10_000,
  /** Maximum paths that are tried for one circuit. */
  routeAttemptsMax: 2,
  /**
   * Maximum terminators for which this controller stores failed dials; the terminator whose last
   * failure is oldest is evicted.
   */
  failingHostsMax: 65_536,
  /**
   * Delay from the connection of a router to the validation of its terminators; meanwhile the
   * router may recreate them.
   */
  terminatorsAskedAfterMs: 5000,
  /** Maximum terminators in one validation message. */
  terminatorsAskedAtOnceMax: 500,
  /**
   * Timeout for a router to validate terminators on request; an OpenZiti router needs up to 30 s.
   */
  terminatorLookMs: 35_000,
  /** Maximum connected identities shown per router. */
  routerClientsMax: 100_000,
  /** Maximum metric values in one router report that are published as events. */
  routerFiguresMax: 4096,
  /** Maximum circuit byte counts in one router report that are published as events. */
  routerUsagesMax: 16_384,
  /** Maximum connections of one identity in one router report that are published as events. */
  identityConnectsMax: 64,
  /**
   * Interval at which records, members and leadership are compared with the values that routers
   * last received.
   */
  routerSweepMs: 500,
} as const
