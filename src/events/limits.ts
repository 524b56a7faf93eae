const MIB = 1024 * 1024

/** Limits for storing events and for sending them to clients. */
export const eventLimits = {
  /**
   * Maximum events that a controller retains for readers that reconnect or read slowly; above that,
   * the oldest events are evicted.
   */
  eventsKeptMax: 50_000,
  /**
   * Maximum bytes of the events that a controller retains; above that, the oldest events are
   * evicted.
   */
  eventBytesKeptMax: 32 * MIB,
  /**
   * Maximum concurrent event streams of all callers of one controller; above that: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  eventStreamsMax: 64,
  /**
   * Maximum concurrent event streams of one identity; above that: 429 SERVER_TOO_MANY_REQUESTS.
   */
  eventStreamsPerCallerMax: 8,
  /** A stream is closed if its client reads nothing for this time although events are waiting. */
  eventStallMs: 20_000,
  /**
   * Time that a client may take to close its stream after the controller sent the reason for
   * closing; then the controller closes the stream.
   */
  eventLingerMs: 5000,
  /**
   * Characters of text that one stream of server-sent events buffers, in addition to the socket's
   * buffer; above that, the stream adds no further event until the client has read.
   */
  eventStreamCharactersMax: 16 * 1024,
  /** Interval of heartbeats on an idle stream. */
  eventHeartbeatMs: 15_000,
  /** Characters after which a write to standard output takes no further event. */
  eventBatchBytes: 64 * 1024,
  /** Maximum number of observations that wait to become events; more are dropped and counted. */
  liveFactsWaitingMax: 10_000,
  /**
   * Maximum number of combinations of service, terminator and result that are counted in one
   * interval; dials of further combinations are not counted.
   */
  dialCountsMax: 10_000,
  /**
   * Maximum number of terminators of one router for which an event is emitted when the router
   * connects or disconnects.
   */
  terminatorEventsMax: 10_000,
  /** Maximum names in one filter. */
  eventFilterNamesMax: 64,
  /**
   * Maximum bytes of one message from a WebSocket client, small because requests for events are
   * small; above that, the connection is closed.
   */
  webSocketMessageBytesMax: 64 * 1024,
  /** Maximum fragments of one WebSocket message; above that, the connection is closed. */
  webSocketFragmentsMax: 64,
  /** Delay before a write to a full standard output is retried. */
  eventLinesRetryMs: 50,
  /** Delay before a failed write to a file is retried. */
  eventFileRetryMs: 1000,
  /** Characters after which a write to an event file takes no further event. */
  eventFileBatchBytes: 256 * 1024,
} as const
