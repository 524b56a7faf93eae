/** Limits for clients of the edge router and the services they host. */
export const edgeLimits = {
  /** Maximum stored API sessions. */
  apiSessionsMax: 250_000,
  /**
   * Maximum hellos that wait for a controller to send their session; a further hello with an
   * unknown session is refused at once.
   */
  apiSessionWaitersMax: 1024,
  /** Maximum stored verified access tokens. */
  bearerTokensMax: 65_536,
  /** Time for which a verified access token is stored without a connected client. */
  bearerUnshownMs: 60_000,
  /** Interval for checking the expiry of access tokens. */
  bearerSweepMs: 5000,
  /** Maximum open client connections per listener; further connections are closed immediately. */
  clientConnectionsOpenMax: 16_384,
  /**
   * Maximum open client connections of one source at one listener; further connections are closed
   * immediately.
   */
  clientConnectionsPerSourceMax: 2048,
  /**
   * Maximum connections of a listener that are not admitted yet. Above that, the oldest handshake
   * or the new connection is closed.
   */
  clientsWaitingMax: 1024,
  /**
   * Maximum connections of one source that are not admitted yet. Above that, the oldest
   * handshake of the source or the new connection is closed.
   */
  clientsWaitingPerSourceMax: 128,
  /** TCP keep-alive delay, because clients do not respond to heartbeats. */
  clientKeepAliveMs: 30_000,
  /** Maximum bytes of the headers of the request for a web socket. */
  upgradeHeaderBytesMax: 16 * 1024,
  /** Interval for enforcing the timeout of requests for a web socket. */
  upgradeCheckEveryMs: 1000,
  /** Maximum bytes of one web socket message; above that, the connection is closed. */
  webSocketMessageBytesMax: 1024 * 1024,
  /** Maximum fragments of one web socket message; above that, the connection is closed. */
  webSocketFragmentsMax: 64,
  /**
   * Maximum bytes that a web socket may receive before its client is admitted: TLS handshake and
   * hello.
   */
  webSocketAdmissionBytesMax: 128 * 1024,
  /** Time in which a client responds to the close frame of a web socket. */
  webSocketCloseMs: 2000,
  /** Maximum channels of one identity. */
  clientChannelsPerIdentityMax: 256,
  /** Maximum connections within one channel of a client. */
  clientConnectionsPerChannelMax: 16_384,
  /** Maximum connections within the channels of all clients, divided fairly among identities. */
  clientConnectionsMax: 131_072,
  /** Maximum bytes of the stored posture reports of one channel. */
  clientPostureBytesMax: 32 * 1024,
  /**
   * Maximum bytes of stored posture reports of all channels. Above that, a report is sent but
   * not stored for controllers that connect later.
   */
  clientPosturesBytesMax: 64 * 1024 * 1024,
  /** Maximum posture reports of one client to which controllers have not responded yet. */
  clientPosturesWaitingMax: 16,
  /** Timeout for the response of each controller to a posture report. */
  clientPostureMs: 5000,
  /** Maximum concurrent connect requests of one identity; further ones wait. */
  connectsAtOnceMax: 32,
  /** Maximum running and waiting connect requests of one identity; further ones are refused. */
  connectsWaitingMax: 1024,
  /**
   * Maximum bytes from one client that are queued for its circuits; above that, the router stops
   * reading from the client.
   */
  clientQueuedBytesMax: 1024 * 1024,
  /** Maximum unsent bytes to one client; above that, the client's circuits wait. */
  clientUnsentBytesMax: 1024 * 1024,
  /** Maximum unanswered trace requests per connection; the oldest is dropped. */
  clientTracesMax: 8,
  /** Maximum services that one client channel hosts; a further one is refused. */
  hostedPerChannelMax: 1024,
  /**
   * Maximum services that the clients of all channels host at this router; a further one is
   * refused.
   */
  hostedMax: 16_384,
  /** Maximum terminators that wait to be removed. */
  terminatorsRemovedWaitingMax: 65_536,
  /** Maximum terminators that one request to a controller removes. */
  terminatorsRemovedAtOnceMax: 50,
  /** Delay before a terminator request is repeated to which no controller has responded. */
  terminatorAgainMs: 30_000,
  /** Delay before a terminator request is repeated after a controller was busy or refused it. */
  terminatorBusyMs: 1000,
  /** After this number of refusals without a hint to retry, the host is informed. */
  terminatorStrikesMax: 3,
  /** Minimum interval between two reported changes of one terminator. */
  terminatorChangedEveryMs: 1000,
  /**
   * Changes of cost, precedence or health that one identity may report at the same time (burst);
   * later changes wait.
   */
  hostChangesBurst: 64,
  /** Changes that one identity may report per second after the burst `hostChangesBurst`. */
  hostChangesPerSecond: 4,
  /** Terminators that one identity may create at the same time (burst). */
  hostCreationsBurst: 1024,
  /** Terminators that one identity may create per second after the burst; more wait. */
  hostCreationsPerSecond: 10,
  /**
   * Delay before terminators are sent again to a controller that has reconnected. The controller
   * first validates the existing ones.
   */
  terminatorsRepeatedMs: 10_000,
  /** Interval for checking which requests about terminators are due. */
  terminatorsSweptEveryMs: 1000,
  /** Timeout for a host's response to a dial. */
  hostDialMsMax: 5000,
  /**
   * Timeout for a host's response to the inspection of a hosted service; after that, its state
   * counts as unknown.
   */
  hostInspectionMsMax: 10_000,
} as const
