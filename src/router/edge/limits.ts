/** Limits for clients of the edge router and the services they host. */
export const edgeLimits = {
  /**
   * Maximum stored API sessions, and maximum hellos that wait for a controller to send their
   * session.
   */
  apiSessionsMax: 250_000,
  apiSessionWaitersMax: 1024,
  /** Stored verified access tokens, and how long each is kept without a connected client. */
  bearerTokensMax: 65_536,
  bearerUnshownMs: 60_000,
  /** Interval for checking the expiry of access tokens. */
  bearerSweepMs: 5000,
  /** Open client connections per listener, and per source. */
  clientConnectionsOpenMax: 16_384,
  clientConnectionsPerSourceMax: 2048,
  /** Connections that are not admitted yet: in total, and per source. */
  clientsWaitingMax: 1024,
  clientsWaitingPerSourceMax: 128,
  /** TCP keep-alive delay, because clients do not respond to heartbeats. */
  clientKeepAliveMs: 30_000,
  /**
   * Maximum header bytes of the request for a web socket, and how often its timeout is checked.
   */
  upgradeHeaderBytesMax: 16 * 1024,
  upgradeCheckEveryMs: 1000,
  /** Maximum bytes of one web socket message, and maximum number of its fragments. */
  webSocketMessageBytesMax: 1024 * 1024,
  webSocketFragmentsMax: 64,
  /**
   * Maximum bytes that a web socket may receive before its client is admitted: TLS handshake and
   * hello.
   */
  webSocketAdmissionBytesMax: 128 * 1024,
  /** Time in which a client responds to the close frame of a web socket. */
  webSocketCloseMs: 2000,
  /** Channels per identity. */
  clientChannelsPerIdentityMax: 256,
  /** Connections within channels: per channel, and in total. */
  clientConnectionsPerChannelMax: 16_384,
  clientConnectionsMax: 131_072,
  /** Stored posture reports: per channel, and in total. */
  clientPostureBytesMax: 32 * 1024,
  clientPosturesBytesMax: 64 * 1024 * 1024,
  /** Posture reports of one client to which controllers have not responded yet. */
  clientPosturesWaitingMax: 16,
  /** Timeout for each answer. */
  clientPostureMs: 5000,
  /** Concurrent connect requests per identity; further ones wait, or are refused. */
  connectsAtOnceMax: 32,
  connectsWaitingMax: 1024,
  /** Bytes of one client queued for its circuits; beyond that, the router stops reading from it. */
  clientQueuedBytesMax: 1024 * 1024,
  /** Unsent bytes to one client; beyond that, its circuits wait. */
  clientUnsentBytesMax: 1024 * 1024,
  /** Unanswered trace requests per connection; the oldest is dropped. */
  clientTracesMax: 8,
  /** Hosted services: per channel, and in total. */
  hostedPerChannelMax: 1024,
  hostedMax: 16_384,
  /** Maximum terminators that wait to be removed. */
  terminatorsRemovedWaitingMax: 65_536,
  terminatorsRemovedAtOnceMax: 50,
  /**
   * Delay before a terminator request is repeated, when the controller did not respond or was busy.
   */
  terminatorAgainMs: 30_000,
  terminatorBusyMs: 1000,
  /** After this number of refusals without a hint to retry, the host is informed. */
  terminatorStrikesMax: 3,
  /**
   * Rate of changes by hosts: interval per terminator; burst and rate per second of an identity.
   */
  terminatorChangedEveryMs: 1000,
  hostChangesBurst: 64,
  hostChangesPerSecond: 4,
  /** Terminators created per identity: burst, then per second. */
  hostCreationsBurst: 1024,
  hostCreationsPerSecond: 10,
  /**
   * Delay before terminators are sent again to a controller that has reconnected. The controller
   * first validates the existing ones.
   */
  terminatorsRepeatedMs: 10_000,
  terminatorsSweptEveryMs: 1000,
  /** Timeouts for a host's response to a dial, and to an inspection of a hosted service. */
  hostDialMsMax: 5000,
  hostInspectionMsMax: 10_000,
} as const
