/** Limits for clients of the edge router and the services they host. */
export const edgeLimits = {
  /** Maximum stored tokens of API sessions that controllers have sent; OIDC tokens do not count. */
  apiSessionsMax: 250_000,
  /**
   * Maximum clients whose hello waits until a controller sends their session; a further client with
   * an unknown session is refused immediately.
   */
  apiSessionWaitersMax: 1024,
  /** Maximum stored verified access tokens. */
  bearerTokensMax: 65_536,
  /** Time for which a verified access token is stored while no client is connected with it. */
  bearerUnshownMs: 60_000,
  /** Interval for checking the expiry of access tokens. */
  bearerSweepMs: 5000,
  /** Maximum open client connections per listener; more are closed immediately. */
  clientConnectionsOpenMax: 16_384,
  /** Maximum open client connections of one source at one listener; more are closed immediately. */
  clientConnectionsPerSourceMax: 2048,
  /**
   * Maximum TLS handshakes of a listener at the same time; above that, the oldest one of the source
   * with the most handshakes is closed. Also the maximum connections after the handshake whose
   * client is not admitted yet; above that, the new one is closed.
   */
  clientsWaitingMax: 1024,
  /** The same two limits as `clientsWaitingMax`, for the connections of one source. */
  clientsWaitingPerSourceMax: 128,
  /** Delay of TCP keep-alive probes, which are needed because clients do not answer heartbeats. */
  clientKeepAliveMs: 30_000,
  /** Maximum bytes of the headers of the HTTP request that opens a web socket. */
  upgradeHeaderBytesMax: 16 * 1024,
  /** Interval for checking the timeout of HTTP requests that open a web socket. */
  upgradeCheckEveryMs: 1000,
  /** Maximum bytes of one web socket message; above that, the connection is closed. */
  webSocketMessageBytesMax: 1024 * 1024,
  /** Maximum fragments of one web socket message; above that, the connection is closed. */
  webSocketFragmentsMax: 64,
  /**
   * Maximum bytes that a web socket may receive before its client is admitted; the TLS handshake
   * and the hello need far less.
   */
  webSocketAdmissionBytesMax: 128 * 1024,
  /** Maximum time in which a client answers the close frame of a web socket. */
  webSocketCloseMs: 2000,
  /** Maximum channels of one identity; a further one is refused. */
  clientChannelsPerIdentityMax: 256,
  /** Maximum connections within one channel of a client; a further one is refused. */
  clientConnectionsPerChannelMax: 16_384,
  /**
   * Maximum connections within the channels of all clients, shared fairly among identities; a
   * further one is refused.
   */
  clientConnectionsMax: 131_072,
  /**
   * Maximum bytes of the stored posture reports of one channel; above that, the channel is closed.
   */
  clientPostureBytesMax: 32 * 1024,
  /**
   * Maximum bytes of stored posture reports of all channels. Above that, the reports of a channel
   * are sent but not stored for controllers that connect later.
   */
  clientPosturesBytesMax: 64 * 1024 * 1024,
  /**
   * Maximum posture reports of one client to which controllers have not responded yet; a further
   * report closes the channel.
   */
  clientPosturesWaitingMax: 16,
  /** Time limit for a controller's response to a posture report. */
  clientPostureMs: 5000,
  /** Maximum connect requests of one identity that run at the same time; further ones wait. */
  connectsAtOnceMax: 32,
  /** Maximum running and waiting connect requests of one identity; further ones are refused. */
  connectsWaitingMax: 1024,
  /**
   * Maximum bytes from one client that wait for its circuits; above that, the router does not read
   * from the client.
   */
  clientQueuedBytesMax: 1024 * 1024,
  /** Maximum bytes that a client has not read; above that, the client's circuits wait. */
  clientUnsentBytesMax: 1024 * 1024,
  /**
   * Maximum trace requests without a response for each connection; a further one replaces the
   * oldest.
   */
  clientTracesMax: 8,
  /** Maximum services that one client channel hosts; a further one is refused. */
  hostedPerChannelMax: 1024,
  /**
   * Maximum services that the clients of all channels host at this router; a further one is
   * refused.
   */
  hostedMax: 16_384,
  /**
   * Maximum removed terminators whose removal is to be reported to the controllers; the removal of
   * further ones is not reported.
   */
  terminatorsRemovedWaitingMax: 65_536,
  /** Maximum terminators that one request to a controller removes. */
  terminatorsRemovedAtOnceMax: 50,
  /** Delay before a terminator request without a response is repeated. */
  terminatorAgainMs: 30_000,
  /** Delay before a terminator request is repeated after a controller was busy or refused it. */
  terminatorBusyMs: 1000,
  /**
   * Number of refusals without a retry hint after which the router reports the refusal to the host.
   * A refusal with a retry hint, or because of an invalid session, is reported immediately.
   */
  terminatorStrikesMax: 3,
  /** Minimum interval between two reported changes of one terminator. */
  terminatorChangedEveryMs: 1000,
  /**
   * Maximum changes of cost, precedence or health that one identity may report in a burst; later
   * changes wait.
   */
  hostChangesBurst: 64,
  /**
   * Changes of cost, precedence or health that one identity may report per second after the burst
   * `hostChangesBurst`.
   */
  hostChangesPerSecond: 4,
  /**
   * Maximum requests to create terminators that the router sends for one identity in a burst; later
   * requests wait.
   */
  hostCreationsBurst: 1024,
  /**
   * Requests to create terminators that the router sends for one identity per second after the
   * burst `hostCreationsBurst`.
   */
  hostCreationsPerSecond: 10,
  /**
   * Delay before the router sends creation requests again to a controller that has reconnected,
   * because the controller first validates the existing terminators.
   */
  terminatorsRepeatedMs: 10_000,
  /** Interval for checking which terminator requests must be sent. */
  terminatorsSweptEveryMs: 1000,
  /** Timeout for a host's response to a dial. */
  hostDialMsMax: 5000,
  /**
   * Timeout for a host's response to the inspection of a hosted service; after that, its state
   * counts as unknown.
   */
  hostInspectionMsMax: 10_000,
} as const
