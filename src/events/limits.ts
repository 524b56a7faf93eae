const MIB = 1024 * 1024

/** All limits of events. */
export const eventLimits = {
  /**
   * Maximum events that a controller retains for readers that reconnect or lag; above that, the
   * oldest events are evicted.
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
  /** A stream is closed if events are waiting and its client reads nothing for this time ... */
  eventStallMs: 20_000,
  /**
   * Time that a client may take to close its stream after the controller sent the reason for
   * closing; then the controller closes the stream.
   */
  eventLingerMs: 5000,
  /**
   * Maximum characters of text buffered for one stream, in addition to the text in the connection's
   * own buffer.
   */
  eventStreamCharactersMax: 16 * 1024,
  /**
   * Interval of comments sent over an idle stream, and of checks whether its caller still has
   * permission.
   */
  eventHeartbeatMs: 15_000,
  /** Bytes written to standard output at once. */
  eventBatchBytes: 64 * 1024,
  /** Maximum number of observations that wait to become events; more are dropped and counted. */
  liveFactsWaitingMax: 10_000,
  /**
   * Maximum number of services, terminators and results with separate counts in one interval;
   * further ones are not counted.
   */
  dialCountsMax: 10_000,
  /**
   * Maximum number of terminators of one router for which an event is emitted when the router
   * connects or disconnects.
   */
  terminatorEventsMax: 10_000,
  /** Names in one filter. */
  eventFilterNamesMax: 64,
  /**
   * Maximum bytes of one message from a WebSocket client, small because a request for events is
   * small; above that, the connection is closed.
   */
  webSocketMessageBytesMax: 64 * 1024,
  /** Maximum fragments of one WebSocket message; above that, the connection is closed. */
  webSocketFragmentsMax: 64,
  /** Delay before a write to a full standard output is retried. */
  eventLinesRetryMs: 50,
  /** Delay before a failed write to a file is retried. */
  eventFileRetryMs: 1000,
  /** Bytes written to a file at once. */
  eventFileBatchBytes: 256 * 1024,
} as const
