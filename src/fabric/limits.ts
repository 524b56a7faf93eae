/**
 * Limits of the load that routers put on one controller, in addition to the limits of each channel.
 */
export const routerLimits = {
  /** Maximum open connections of the router listener; more connections are closed immediately. */
  routerConnectionsMax: 8192,
  /**
   * Maximum connections from one source; high, because many routers may share an address. More are
   * closed immediately.
   */
  routerConnectionsPerSourceMax: 1024,
  /** Maximum sockets of the channel of one router; further sockets are refused. */
  routerSocketsMax: 3,
  /** Connections that one source may open in a burst; more are closed immediately. */
  routerConnectionsPerSourceBurst: 256,
  /**
   * Connections that one source may open per second after the burst
   * `routerConnectionsPerSourceBurst`; more are closed immediately.
   */
  routerConnectionsPerSourcePerSecond: 32,
  /** Connections that one router, identified by its certificate, may open in a burst. */
  routerConnectsBurst: 8,
  /** Connections that one router may open per second after the burst `routerConnectsBurst`. */
  routerConnectsPerSecond: 0.5,
  /** Maximum number of sources, of certificates, and of routers whose rate is tracked. */
  routerRatesMax: 16_384,
  /**
   * Maximum time for the TLS handshake, and the same maximum for the time from the end of the
   * handshake to the hello; after that, the connection is closed.
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
   * Maximum addresses that are stored and shown for one network interface of a router; further ones
   * are dropped.
   */
  routerInterfaceAddressesMax: 8,
  /**
   * Maximum characters of each text about a network interface: its name, hardware address and
   * addresses. Longer texts are truncated.
   */
  routerInterfaceCharactersMax: 64,
  /** Maximum link listeners that are shown for one router. */
  routerListenersShownMax: 8,
  /**
   * Maximum characters stored of each string that a router reports about itself; longer strings are
   * truncated.
   */
  routerTextCharactersMax: 255,
  /** Alerts of one router that may become events in a burst; further ones are dropped. */
  routerAlertsBurst: 64,
  /** Alerts of one router that become events per second after the burst `routerAlertsBurst`. */
  routerAlertsPerSecond: 1,
  /** Maximum details, and related entities, of one alert of a router; further ones are dropped. */
  routerAlertItemsMax: 8,
  /**
   * Maximum log lines per minute about refused routers and refused messages of routers, because a
   * refused router dials repeatedly.
   */
  routerRefusalsLoggedMax: 60,
  /** Warnings that may be logged about one connected router in a burst. */
  routerWarningsBurst: 20,
  /**
   * Warnings that are logged about one connected router per second after the burst
   * `routerWarningsBurst`.
   */
  routerWarningsPerSecond: 0.2,
  /**
   * Maximum routers for which a controller stores the time at which they disconnected or
   * reconnected.
   */
  routerPresencesMax: 16_384,
  /** Interval at which the leader stores which routers connected and disconnected. */
  routerPresenceLogMs: 60_000,
  /**
   * If a router has not connected since the controllers started, a new leader waits for this time
   * before it stores that the router is offline.
   */
  routerPresenceGraceMs: 120_000,
  /** Maximum routers in one log entry that stores which routers connected and disconnected. */
  routerPresenceBatchMax: 500,
  /** Maximum links that a controller stores; further reported links are ignored. */
  linksMax: 65_536,
  /** Maximum links that one router may report; further links are ignored. */
  linksPerRouterMax: 8192,
  /** Maximum sockets that are shown for one link. */
  linkConnectionsMax: 16,
  /**
   * Maximum link listeners of one router; further ones are ignored. Also the maximum groups of one
   * listener; a listener with more is ignored.
   */
  linkListenersMax: 32,
  /** Maximum log entries whose data model changes are kept for routers that reconnect. */
  modelEntriesMax: 10_000,
  /** Maximum encoded bytes of the data model changes that are kept for routers that reconnect. */
  modelEntriesBytesMax: 64 * 1024 * 1024,
  /**
   * Maximum routers that receive the full model at the same time. For each of them, the
   * controller holds a copy of the model in memory until the router has read it.
   */
  modelSendsMax: 4,
  /**
   * Maximum time for a router to read the full model; after that, the router's channel is closed.
   */
  modelSendTimeoutMs: 60_000,
  /**
   * Shortest duration of a router's subscription to the data model; a router that requests less
   * gets this duration.
   */
  modelSubscriptionSecondsMin: 10,
  /**
   * Longest duration of a router's subscription to the data model; a router that requests more gets
   * this duration.
   */
  modelSubscriptionSecondsMax: 360,
  /**
   * Interval at which the controller sends the index of the current data model to routers if the
   * index has grown.
   */
  modelIndexEveryMs: 30_000,
  /**
   * Maximum time for inspecting one router. A slower router appears as an error in the response to
   * the operator, whose time limit is longer.
   */
  // @guard inspection-of-a-router--time
  routerInspectionTimeoutMs: 5000,
  /**
   * Maximum service session tokens that are stored after clients presented them at routers. When
   * such a session ends, the controller names it to the router by this token.
   */
  sessionsShownMax: 65_536,
  /** Maximum presented session tokens that are stored for one router; the oldest is evicted. */
  sessionsShownPerRouterMax: 4096,
  /** Minimum interval between two full lists of API sessions that one router requests. */
  wholeSessionsEveryMs: 5000,
  /**
   * Maximum service sessions about which a router may ask in one request; further ones are ignored.
   */
  sessionsValidatedMax: 1000,
  /** Maximum concurrent writes of one router; further writes wait. */
  routerWritesAtOnceMax: 2,
  /**
   * Maximum writes of one router, in progress and waiting; more are refused, and the router retries
   * later.
   */
  routerWritesWaitingMax: 256,
  /** Maximum bytes in the log of one write that a router requests; larger writes are refused. */
  routerEntryBytesMax: 16 * 1024,
  /**
   * Maximum access requests per minute and router that contain an invalid API session and are
   * checked again with the latest state.
   */
  refusedClaimsOfRouterMax: 600,
  /**
   * Maximum other refused access requests that are checked again with the latest state, per minute
   * and pair of API session and router.
   */
  refusedClaimsOfSessionMax: 120,
  /**
   * Maximum rejected log entries per minute and pair of API session and router; at the limit,
   * further writes are refused.
   */
  refusedEntriesOfSessionMax: 120,
  /** Maximum posture reports per minute and pair of API session and router. */
  postureReportsOfSessionMax: 120,
  /** Maximum items in one posture report; a report with more is refused. */
  postureReportsMax: 256,
  /**
   * Maximum uses per minute of each of the limits `refusedClaimsOfRouterMax`,
   * `refusedClaimsOfSessionMax`, `refusedEntriesOfSessionMax` and `postureReportsOfSessionMax`,
   * summed over all routers and sessions.
   */
  refusedClaimsMax: 100_000,
  /** Maximum circuits that this controller owns; routers and clients share the limit fairly. */
  circuitsMax: 200_000,
  /** Maximum routers on the path of a circuit that another controller published. */
  circuitRoutersMax: 64,
  /**
   * Maximum circuits that a controller keeps after their owner has failed; further ones are
   * dropped.
   */
  circuitsOrphanedMax: 65_536,
  /**
   * Time for which a controller keeps a circuit whose owner has failed and that another controller
   * should take over; after that, the circuit is dropped. A controller without a majority drops
   * none.
   */
  circuitOrphanMsMax: 60_000,
  /**
   * Time for which a circuit stays published to other controllers after this controller became its
   * owner, even if it has ended.
   */
  circuitClaimPublishedMs: 5000,
  /**
   * Time after the start during which a controller does not make routers drop unknown circuits,
   * because other controllers may not have sent their circuits yet. During this time, dials also
   * wait for hosts whose routers have not connected yet.
   */
  circuitsUnknownMs: 15_000,
  /**
   * Maximum time for which a dial waits for a host whose router or links have not reconnected yet.
   */
  hostsAwaitedMs: 2000,
  /**
   * Maximum dials that wait for a host, shared fairly among clients; further dials without a
   * reachable host are refused immediately.
   */
  hostsAwaitedMax: 16,
  /** Circuits that one router may request in a burst; more are refused. */
  circuitsOfRouterBurst: 8000,
  /**
   * Circuits that one router may request per second after the burst `circuitsOfRouterBurst`; more
   * are refused.
   */
  circuitsOfRouterPerSecond: 400,
  /** Circuits that one client may request in a burst, over all routers; more are refused. */
  circuitsOfClientBurst: 2000,
  /**
   * Circuits that one client may request per second after the burst `circuitsOfClientBurst`, over
   * all routers; more are refused.
   */
  circuitsOfClientPerSecond: 100,
  /** Maximum clients whose rate of circuit requests is tracked. */
  circuitClientsMax: 65_536,
  /**
   * If a router of OpenZiti 1.x sends its first message at least this time after its hello, its
   * next messages count as a backlog, and the controller refuses requests for circuits in it.
   */
  routerSilentMs: 3000,
  /** Time after the first message for which the messages of a silent router count as a backlog. */
  routerBacklogMs: 1000,
  /** Maximum circuit requests of one router that are in progress; more are refused. */
  circuitsWaitingMax: 256,
  /** Maximum time for all routers on a path to answer one attempt to set up a circuit. */
  routeTimeoutMs: 10_000,
  /** Maximum attempts to set up one circuit, each with a chosen host and path. */
  routeAttemptsMax: 2,
  /**
   * Maximum terminators for which this controller stores failed dials; above that, the one whose
   * last failure is oldest is evicted.
   */
  failingHostsMax: 65_536,
  /**
   * Delay between the connection of a router and the validation of its terminators, in which the
   * router may create them again.
   */
  terminatorsAskedAfterMs: 5000,
  /** Maximum terminators in one validation request. */
  terminatorsAskedAtOnceMax: 500,
  /**
   * Maximum time for a router to validate terminators when an operator requests it; an OpenZiti
   * router needs up to 30 s.
   */
  terminatorLookMs: 35_000,
  /** Maximum connected identities that are shown for one router. */
  routerClientsMax: 100_000,
  /** Maximum metric values in one router report that are published as events. */
  routerFiguresMax: 4096,
  /** Maximum circuit byte counts in one router report that are published as events. */
  routerUsagesMax: 16_384,
  /** Maximum connections of one identity in one router report that are published as events. */
  identityConnectsMax: 64,
  /**
   * If the leader cannot reach a controller for this time, routers of OpenZiti 1.x receive a list
   * without this controller. Short, because such a router may hold back the dials of its clients
   * until then, and tunnels of OpenZiti give up after 5 s.
   */
  controllerLostMs: 2000,
  /**
   * Interval at which the controller compares records, members and leadership with the values that
   * routers last received.
   */
  routerSweepMs: 500,
} as const
