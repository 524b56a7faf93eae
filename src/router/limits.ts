/** Everything of one router program that could grow, and its waits. */
export const routerProgramLimits = {
  /** Members of a cluster that are kept and dialed. */
  controllersMax: 64,
  addressesPerControllerMax: 8,
  /** Controllers that one other can add by its list alone, and addresses of each known one. */
  controllersToldByOneMax: 8,
  addressesToldByOneMax: 2,
  /** Keys of removed controllers that are refused, the newest. */
  removedControllersMax: 64,
  /**
   * A controller that the router has not reached for this long while it ran loses its vote, if
   * another controller does not list it.
   */
  controllerAbsentMs: 24 * 60 * 60_000,
  membersJudgedEveryMs: 60_000,
  /**
   * Addresses of the configuration, if the endpoints file names controllers: time from the start to
   * the first attempt, and the longest wait between two.
   */
  configuredEndpointAfterMs: 3000,
  configuredEndpointWaitMsMax: 30_000,
  /** Addresses of the client API that renewals are asked at. */
  apisMax: 16,
  endpointsFileBytesMax: 256 * 1024,
  /**
   * Waits between two dials of one controller grow from the one to the other, half of each by
   * chance.
   */
  dialWaitMs: 50,
  dialWaitMsMax: 8_000,
  /** Between two dials of one controller, at least. */
  dialEveryMsMin: 1000,
  /** Without the word of a leader, members are asked for this often. */
  membersAskedEveryMs: 30_000,
  /** Messages of a controller that are answered at a time; more are refused. */
  inspectedValuesMax: 64,
  /** One value of an inspection, in characters; a longer one is told as too long. */
  inspectedCharactersMax: 1024 * 1024,
  /** Network interfaces that controllers are told of, and addresses of each. */
  interfacesMax: 256,
  interfaceAddressesMax: 64,
  /** Controllers are told of interfaces again after so long when they did not answer. */
  interfacesAgainMs: 60_000,
  /** The trace file; full, it becomes the one of before. */
  traceBytesMax: 64 * 1024 * 1024,
  /** Open connections of one HTTPS server for health checks. */
  healthConnectionsMax: 256,
  /** The same from one source; several probes may share an address. */
  healthConnectionsPerSourceMax: 64,
  /** Handshakes under way at one of them; one more ends the oldest of its source, or of most. */
  healthHandshakesMax: 128,
  healthHandshakesPerSourceMax: 32,
  /** Body of one request to extend certificates, and of its answer: bounded by the client. */
  extendTimeoutMs: 15_000,
  /** How often it is judged whether certificates are due; after a failure, sooner. */
  certificatesJudgedEveryMs: 10 * 60_000,
  extensionAgainMs: 60_000,
  /** Other routers that are dialed, and listeners of each. */
  peersMax: 1024,
  peerListenersMax: 16,
  /** Open connections of one link listener, those that are not admitted yet among them. */
  linkConnectionsMax: 4096,
  /** Connections of one source, behind which several routers may stand. */
  linkConnectionsPerSourceMax: 512,
  /** Handshakes under way at one of them; one more ends the oldest of its source, or of most. */
  linkHandshakesMax: 256,
  linkHandshakesPerSourceMax: 32,
  /** Sockets of one link that another router dials. */
  linkSocketsMax: 32,
  /** Waits before a further socket is dialed again grow from the one to the other. */
  furtherSocketWaitMs: 2000,
  furtherSocketWaitMsMax: 60_000,
  /** Time from the TLS handshake of a router that dials to the word of a controller about it. */
  linkAdmissionMsMax: 10_000,
  /** Connections in that time, and those by one certificate; one more ends the oldest as well. */
  linksWaitingMax: 256,
  linksWaitingPerCertificateMax: 8,
  /**
   * The data model: records, members of policies, and their estimated bytes. A larger one is not
   * kept at all, since a part of it may lack what forbids.
   */
  modelRecordsMax: 500_000,
  modelMembersMax: 4_000_000,
  modelBytesMax: 256 * 1024 * 1024,
  /** Messages about the model that wait to be decoded; beyond them, it is asked for again. */
  modelMessagesMax: 4096,
  modelMessageBytesMax: 128 * 1024 * 1024,
  modelSubscriptionSeconds: 300,
  /** How often it is judged whether the subscription is to be renewed or moved. */
  modelJudgedEveryMs: 5000,
  modelRenewedEveryMs: 60_000,
  /** Whole models that are asked for, at most one in this time. */
  modelAskedEveryMs: 1000,
  /** Tunnel: services that are hosted or offered, and terminators of each. */
  tunnelServicesMax: 10_000,
  hostedTerminatorsMax: 64,
  /** Addresses, ports and translations of one config, and its health checks and their actions. */
  hostRulesMax: 4096,
  hostProbesMax: 64,
  hostConnectMsMax: 300_000,
  /** Interval and timeout of a health check; others count as the nearest of these. */
  hostProbeMsMin: 100,
  hostProbeMsMax: 86_400_000,
  /** The body of an answer to a health check that is looked at. */
  hostProbeBodyBytesMax: 64 * 1024,
  /** Wait for the answer to a request about a terminator. */
  offerTimeoutMs: 10_000,
  /** Waits after failures grow from the one to the other; after a refusal it is the longest. */
  offerWaitMsMin: 500,
  offerWaitMsMax: 60_000,
  /** All terminators are told again so long after a controller has connected. */
  offersRepeatedAfterMs: 10_000,
  /** Attempts to remove a terminator before it is left to the controllers. */
  withdrawalsMax: 10,
  /** How often ports that could not be opened are tried again. */
  entriesRetriedEveryMs: 30_000,
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
  /** The answer of an HTTP proxy to CONNECT, without what follows it. */
  proxyHeadBytesMax: 16 * 1024,
  /** Sockets to targets, of all who dial; fewer, where the process may open fewer. */
  targetSocketsMax: 32_768,
  /** Application data of a client of a hosted service. */
  appDataBytesMax: 4096,
  /** Largest piece of a stream that is sent at a time, in bytes. */
  pieceBytesMax: 32 * 1024,
  /** A peer that takes nothing for so long loses what is left for it when the circuit has ended. */
  flushMsMax: 30_000,
  /** A peer may still send for so long after the last byte for it, to no effect. */
  lingerMs: 2000,
  /** Largest datagram. */
  datagramBytesMax: 65_507,
  /** Bytes of datagrams for one peer that the system has not taken yet. */
  datagramsUnsentBytesMax: 256 * 1024,
  /** Silence after which a peer that sends datagrams is forgotten, and its circuit ends. */
  datagramsIdleMs: 60_000,
  /** Peers of one listener for datagrams, each with a circuit or waiting for it. */
  datagramPeersMax: 4096,
  /** The same from one source. */
  datagramPeersPerSourceMax: 1024,
  /** Datagrams of one peer that wait for its circuit, and their bytes; more are dropped. */
  datagramsWaitingMax: 16,
  datagramsWaitingBytesMax: 64 * 1024,
  /** The same of all peers of a listener. */
  datagramsWaitingBytesOfAllMax: 4 * 1024 * 1024,
  /** A peer whose circuit was refused is not heard for so long. */
  datagramPeerRefusedMs: 1000,
  /** Open connections of one listener for streams, and those of one source. */
  streamConnectionsMax: 8192,
  streamConnectionsPerSourceMax: 4096,
  /** Handshakes under way at one of them that speaks TLS. */
  streamHandshakesMax: 512,
  /** The line in which a client names its service: its bytes, and the time it has. */
  requestLineBytesMax: 4096,
  requestLineMsMax: 10_000,
  /** Circuits that are asked for at a time, of all listeners. */
  circuitsAskedMax: 128,
  /** The same failure of a listener is logged so often. */
  failureLoggedEveryMs: 60_000,
  failureKindsMax: 256,
  /** API sessions that are kept, and hellos that wait for the word of a controller about theirs. */
  apiSessionsMax: 250_000,
  apiSessionWaitersMax: 1024,
  /** Verified access tokens that are kept, and for how long where no client is connected by one. */
  bearerTokensMax: 65_536,
  bearerUnshownMs: 60_000,
  /** How often the time of those is looked at. */
  bearerSweepMs: 5000,
  /** Open connections of one listener for clients, and those of one source. */
  clientConnectionsOpenMax: 16_384,
  clientConnectionsPerSourceMax: 2048,
  /** Connections that are not admitted yet: of all, and of one source. */
  clientsWaitingMax: 1024,
  clientsWaitingPerSourceMax: 128,
  /** A silent connection is tried so often, as clients answer no heartbeats. */
  clientKeepAliveMs: 30_000,
  /** Channels of one identity. */
  clientChannelsPerIdentityMax: 256,
  /** Connections within channels: of one channel, and of all. */
  clientConnectionsPerChannelMax: 16_384,
  clientConnectionsMax: 131_072,
  /** Reports of clients on their devices that are kept: of a channel, and of all. */
  clientPostureBytesMax: 32 * 1024,
  clientPosturesBytesMax: 64 * 1024 * 1024,
  /** Reports of one client that controllers have not answered yet. */
  clientPosturesWaitingMax: 16,
  /** Each answer is waited for so long. */
  clientPostureMs: 5000,
  /** Requests of one identity that a controller works on; more wait, or are refused. */
  connectsAtOnceMax: 32,
  connectsWaitingMax: 1024,
  /** Bytes of one client that its circuits do not take yet: beyond it the client is not read. */
  clientQueuedBytesMax: 1024 * 1024,
  /** Bytes to one client that it has not read: beyond it its circuits wait. */
  clientUnsentBytesMax: 1024 * 1024,
  /** Requests for the route of one connection that wait for an answer; the oldest is forgotten. */
  clientTracesMax: 8,
  /** Services that are hosted: by one channel, and by all. */
  hostedPerChannelMax: 1024,
  hostedMax: 16_384,
  /** Terminators that are to be removed. */
  terminatorsRemovedWaitingMax: 65_536,
  terminatorsRemovedAtOnceMax: 50,
  /** A terminator without an answer is asked for again, and one that a busy controller put off. */
  terminatorAgainMs: 30_000,
  terminatorBusyMs: 1000,
  /** Other refusals of one terminator before its host is told. */
  terminatorStrikesMax: 3,
  /** Changes by its host: of one terminator so often, and of one identity at once and a second. */
  terminatorChangedEveryMs: 1000,
  hostChangesBurst: 64,
  hostChangesPerSecond: 4,
  /** Terminators that one identity has created, at once and then each second. */
  hostCreationsBurst: 1024,
  hostCreationsPerSecond: 10,
  /** After a controller has come back: it asks which terminators there are first. */
  terminatorsToldAgainMs: 10_000,
  terminatorsSweptEveryMs: 1000,
  /** A host answers a dial, and whether it still hosts a service. */
  hostDialMsMax: 5000,
  hostInspectionMsMax: 10_000,
  /** Circuits that this router carries; its controllers share the room. */
  circuitsMax: 131_072,
  /** Ways that one circuit has taken, and its ends in this router, one an attempt. */
  hopsPerCircuitMax: 64,
  endsPerCircuitMax: 8,
  circuitNameCharactersMax: 128,
  /** Between the route of a controller and the answer of the terminator. */
  dialMsMax: 120_000,
  reasonCharactersMax: 1024,
  /** A removed circuit goes on for as long as frames arrive, up to this. */
  leavingMsMax: 60_000,
  /** Circuits that controllers are told of in one message. */
  circuitsPerMessageMax: 1000,
  /** Circuits whose frames lead nowhere, until controllers are told; links share the room. */
  missesMax: 8192,
  /** The log tells of such frames of one router so often. */
  circuitWarningEveryMs: 60_000,
  /** An idle circuit of a controller that is away is kept so long; one that has closed, shorter. */
  abandonedMsMax: 24 * 60 * 60_000,
  closedAbandonedMsMax: 10 * 60_000,
  /** Circuits whose bytes are counted and not told yet, those that have ended among them. */
  usageCircuitsMax: 131_072,
  /** The same of one report, and of one counter in it, which a controller decodes in one step. */
  usageCircuitsPerReportMax: 1000,
  usageCircuitsPerCounterMax: 32,
  /** Bytes that wait at the controller with a report of usage; more waits in the counts. */
  usageQueuedBytesMax: 1024 * 1024,
  /** Circuits that one inspection shows. */
  circuitsShownMax: 2000,
  /** Ends look for what is due so often. */
  ticksEveryMs: 100,
  /**
   * Bytes that wait at a link with a payload, and with anything else: acknowledgements get through
   * where payloads wait or are dropped.
   */
  payloadsQueuedBytesMax: 1024 * 1024,
  acknowledgementsQueuedBytesMax: 2 * 1024 * 1024,
  /** Frames between ends in this router that wait for their turn, and their bytes, of all. */
  localDeliveriesMax: 32_768,
  localDeliveryBytesMax: 64 * 1024 * 1024,
  /** Bytes of all circuits that their ends in this router keep; those who dial share them. */
  bufferedBytesMax: 512 * 1024 * 1024,
  /** A clean stop takes no longer. */
  stopMsMax: 5000,
  /**
   * Payloads of one end of a circuit: on their way and not acknowledged; waiting while nothing may
   * be sent, which ends a circuit whose application does not wait; ahead of the one that is
   * delivered next, beyond which they are dropped.
   */
  xgressInFlightMax: 8192,
  xgressUnsentMax: 8192,
  xgressUnsentBytesMax: 16 * 1024 * 1024,
  xgressAheadMax: 16_384,
  /** A payload that comes in chunks; also bounded by rxBufferSize. */
  xgressJoinedBytesMax: 4 * 1024 * 1024,
  /** Sequences of one acknowledgement, the trace id of a payload, and a control: else refused. */
  xgressSequencesPerMessageMax: 16_384,
  xgressTraceIdBytesMax: 64,
  xgressControlBytesMax: 256,
} as const
