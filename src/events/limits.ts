const MIB = 1024 * 1024

/** Every limit of the events, in one table. */
export const eventLimits = {
  /**
   * Number and bytes of events kept for readers that reconnect or lag. The limit that is reached
   * first applies.
   */
  eventsKeptMax: 50_000,
  eventBytesKeptMax: 32 * MIB,
  /** Event streams at a time, of all callers and of one. */
  eventStreamsMax: 64,
  eventStreamsPerCallerMax: 8,
  /** A stream is closed if events wait and its client reads nothing for this time ... */
  eventStallMs: 20_000,
  /** ... or if its client does not close it within this time after it was sent a reason. */
  eventLingerMs: 5000,
  /** Characters of text buffered for a stream, in addition to the text in the connection. */
  eventStreamCharactersMax: 16 * 1024,
  /** Interval of comments over a quiet stream, and of checks of its caller's permission. */
  eventHeartbeatMs: 15_000,
  /** Bytes passed to the standard output at once. */
  eventBatchBytes: 64 * 1024,
  /** Maximum number of live facts that wait to become events; more are counted and dropped. */
  liveFactsWaitingMax: 10_000,
  /**
   * Maximum number of services, terminators and results counted separately in one interval; more
   * are not counted.
   */
  dialCountsMax: 10_000,
  /**
   * Maximum number of terminators of one router that get an event when the router connects or
   * disconnects.
   */
  terminatorEventsMax: 10_000,
  /** Names in one filter. */
  eventFilterNamesMax: 64,
  /** Maximum size of a message from a web socket client: a request for events is small. */
  webSocketMessageBytesMax: 64 * 1024,
  webSocketFragmentsMax: 64,
  /** A write to a full standard output is retried after this time. */
  eventLinesRetryMs: 50,
  /** A failed write to a file is retried after this time. */
  eventFileRetryMs: 1000,
  /** Bytes written to a file at once. */
  eventFileBatchBytes: 256 * 1024,
} as const
