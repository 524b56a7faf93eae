const MIB = 1024 * 1024

/** Every limit of the events, in one table. */
export const eventLimits = {
  /**
   * Events that are kept for readers that reconnect or lag; the first of the two limits applies.
   */
  eventsKeptMax: 50_000,
  eventBytesKeptMax: 32 * MIB,
  /** Event streams at a time, of all callers and of one. */
  eventStreamsMax: 64,
  eventStreamsPerCallerMax: 8,
  /** A stream whose client reads nothing for this long, with events waiting, is closed ... */
  eventStallMs: 20_000,
  /** ... and so is a stream whose client was sent the reason and does not close it. */
  eventLingerMs: 5000,
  /** Buffered text of a stream, in addition to the text in the connection. */
  eventStreamCharactersMax: 16 * 1024,
  /**
   * A comment is sent over a quiet stream this often, and the permission of its caller is checked
   * again.
   */
  eventHeartbeatMs: 15_000,
  /** Bytes handed to the standard output at once. */
  eventBatchBytes: 64 * 1024,
  /** Live facts that are queued to become events; more are counted and dropped. */
  liveFactsWaitingMax: 10_000,
  /**
   * Services, terminators and results that are counted separately over one interval; more are not
   * counted.
   */
  dialCountsMax: 10_000,
  /** Terminators of one router that get an event when the router connects or disconnects. */
  terminatorEventsMax: 10_000,
  /** Names in one filter. */
  eventFilterNamesMax: 64,
  /** Size of one web socket message: a request for events is small. */
  webSocketMessageBytesMax: 64 * 1024,
  webSocketFragmentsMax: 64,
  /** A standard output that is not read fast enough is retried after this time. */
  eventLinesRetryMs: 50,
  /** A file that cannot be written is retried after this time. */
  eventFileRetryMs: 1000,
  /** Bytes written to a file at once. */
  eventFileBatchBytes: 256 * 1024,
} as const
