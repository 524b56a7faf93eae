/** Limits of what routers can take of one controller, beside those of each channel. */
export const routerLimits = {
  /** Open connections of the router listener; more are closed at once. */
  routerConnectionsMax: 8192,
  /**
   * Connections of one source, as many routers may stand behind one address; more are closed at
   * once.
   */
  routerConnectionsPerSourceMax: 1024,
  /** Connections that one source opens at once, and then each second; more are closed at once. */
  routerConnectionsPerSourceBurst: 256,
  routerConnectionsPerSourcePerSecond: 32,
  /** The same of one router, by its certificate. */
  routerConnectsBurst: 8,
  routerConnectsPerSecond: 0.5,
  /** Sources and certificates whose pace is remembered, each. */
  routerRatesMax: 16_384,
  /**
   * Time from the first packet to the end of the TLS handshake, and then again to the hello;
   * beyond: closed.
   */
  routerHandshakeTimeoutMs: 5000,
  /** Protocols of one router that are shown. */
  routerProtocolsMax: 16,
  routerCapabilitiesMax: 64,
  /** Characters of each text that a router says of itself; the rest is cut off. */
  routerTextCharactersMax: 255,
  /**
   * Lines in the log about refused routers, of a minute: one that is refused dials again and again.
   */
  routerRefusalsLoggedMax: 60,
  /** The same of warnings about one router that is connected, at once and then each second. */
  routerWarningsBurst: 20,
  routerWarningsPerSecond: 0.2,
  /** Links that a controller knows of; those beyond are not shown. */
  linksMax: 65_536,
  /** Links that one router reports. */
  linksPerRouterMax: 8192,
  /** Sockets of one link that are shown. */
  linkConnectionsMax: 16,
  /** Addresses that one router listens at for links, and groups of each. */
  linkListenersMax: 32,
  /** Entries of the log whose changes of the data model are kept for routers that come back. */
  modelEntriesMax: 10_000,
  /** Bytes of those entries, encoded. */
  modelEntriesBytesMax: 64 * 1024 * 1024,
  /**
   * Routers that are sent the whole model at once, as each of them holds a copy until it is read.
   */
  modelSendsMax: 4,
  /** For a router to read all of it; beyond: its channel is closed. */
  modelSendTimeoutMs: 60_000,
  /**
   * For so long a router gets changes after it has asked for them, as it asks within these bounds.
   */
  modelSubscriptionSecondsMin: 10,
  modelSubscriptionSecondsMax: 360,
  /** How often routers are told how far the model is. */
  modelIndexEveryMs: 30_000,
  /**
   * For what a router tells of itself; it is an error in the answer then, which has longer itself.
   */
  // @guard inspection-of-a-router--time
  routerInspectionTimeoutMs: 5000,
  /** Tokens of service sessions that routers showed, kept to name them when they end. */
  sessionsShownMax: 65_536,
  /** Sessions of one router; the oldest goes. */
  sessionsShownPerRouterMax: 4096,
  /** A router that asks for all API sessions again is told them once in so long. */
  wholeSessionsEveryMs: 5000,
  /** Service sessions that a router asks about at once. */
  sessionsValidatedMax: 1000,
  /** Writes of one router among those of all that are proposed; the others of it wait. */
  routerWritesAtOnceMax: 2,
  /** Writes of one router that wait; beyond: it is told to come back. */
  routerWritesWaitingMax: 256,
  /** Bytes that one write of a router puts into the log; beyond: refused. */
  routerEntryBytesMax: 16 * 1024,
  /** Claims in a minute that are judged again: of API sessions that are none, by one router. */
  refusedClaimsOfRouterMax: 600,
  /** The same of all else, by one API session at one router. */
  refusedClaimsOfSessionMax: 120,
  /** Entries of the log in a minute that were refused because of an API session at one router. */
  refusedEntriesOfSessionMax: 120,
  /** Reports of the device of an API session in a minute, by one router. */
  postureReportsOfSessionMax: 120,
  /** Things that one such report names. */
  postureReportsMax: 256,
  /** Each of these four of all. */
  refusedClaimsMax: 100_000,
  /** Circuits that this controller has made and not ended; routers and clients share the room. */
  circuitsMax: 200_000,
  /** Routers on the way of a circuit that another controller has told. */
  circuitRoutersMax: 64,
  /** Circuits that no controller answers for: how many are kept, and each for how long. */
  circuitsOrphanedMax: 65_536,
  circuitOrphanMsMax: 60_000,
  /** Time for which other controllers are told of a claimed circuit, even if it has ended. */
  circuitClaimPublishedMs: 5000,
  /**
   * For so long after its start a controller takes no circuit from a router that it does not know:
   * it may have to hear of it first.
   */
  circuitsUnknownMs: 15_000,
  /** Time that a dial then waits for a host whose router or links have yet to come back. */
  hostsAwaitedMs: 2000,
  /** Dials that wait so at a time, shared by clients; beyond: refused at once. */
  hostsAwaitedMax: 16,
  /** Circuits that one router asks for at once, and then each second; beyond: refused. */
  circuitsOfRouterBurst: 8000,
  circuitsOfRouterPerSecond: 400,
  /** The same of one client, whichever routers it asks by. */
  circuitsOfClientBurst: 2000,
  circuitsOfClientPerSecond: 100,
  /** Clients whose pace is remembered. */
  circuitClientsMax: 65_536,
  /** Circuits of one router that are being made; beyond: refused as busy. */
  circuitsWaitingMax: 256,
  /** For all routers of a circuit to answer, of each attempt. */
  routeTimeoutMs: 10_000,
  /** Ways that are tried for one circuit. */
  routeAttemptsMax: 2,
  /** Terminators at which dials failed, that this controller remembers; the oldest goes. */
  failingHostsMax: 65_536,
  /** A router is asked for its terminators so long after it connects: it may make them anew. */
  terminatorsAskedAfterMs: 5000,
  /** Terminators that one message asks for. */
  terminatorsAskedAtOnceMax: 500,
  /** A router has so long to say what it finds of terminators; one of the family takes 30 s. */
  terminatorLookMs: 35_000,
  /** Identities with a connection to one router that are shown as connected. */
  routerClientsMax: 100_000,
  /** Figures of one report of a router that events tell of. */
  routerFiguresMax: 4096,
  /** Counts of bytes of circuits in one such report. */
  routerUsagesMax: 16_384,
  /** Connections of one identity, of one report, that events tell of. */
  identityConnectsMax: 64,
  /**
   * How often records, members and leadership are compared with what the connected routers were
   * told.
   */
  routerSweepMs: 500,
} as const
