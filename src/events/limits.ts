const MIB = 1024 * 1024

/** All limits of events. */
export const eventLimits = {
  /**
   * Number and bytes of events that are retained for readers that reconnect or lag. The limit that
   * is reached first applies.
   */
  eventsKeptMax: 50_000,
  eventBytesKeptMax: 32 * MIB,
  /** Concurrent event streams: of all callers, and of one caller. */
  eventStreamsMax: 64,
  eventStreamsPerCallerMax: 8,
  /** A stream is closed if events are waiting and its client reads nothing for this time ... */
  eventStallMs: 20_000,
  /**
   * ... or if its client does not close it within this time after the controller sent the reason
   * for closing.
   */
  eventLingerMs: 5000,
  /**
   * Characters of text buffered for one stream, in addition to the text in the connection's own
   * buffer.
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
   * Maximum size of a message from a WebSocket client; small, because a request for events is
   * small.
   */
  webSocketMessageBytesMax: 64 * 1024,
  webSocketFragmentsMax: 64,
  /** Delay before a write to a full standard output is retried. */
  eventLinesRetryMs: 50,
  /** Delay before a failed write to a file is retried. */
  eventFileRetryMs: 1000,
  /** Bytes written to a file at once. */
  eventFileBatchBytes: 256 * 1024,
} as const
